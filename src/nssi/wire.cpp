// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/wire.hpp>

namespace nssi::wire {

using nessie::Code;
using nessie::Error;
using nessie::Scope;

namespace {

constexpr std::size_t kPrefixBytes = 12;
constexpr std::size_t kMaxErrorText = 2048;

bool known(Kind kind) { return kind >= Kind::kRequest && kind <= Kind::kHello; }

bool sound(const std::optional<Buffer> &buffer) { return !buffer || buffer->remote.rights <= nnti::Rights::kReadWrite; }

Error bad(const char *message) { return Error{Code::kBadMessage, message}; }

}  // namespace

nessie::Result<Prefix> decode_prefix(std::span<const std::byte> message) {
  if (message.size() < kPrefixBytes) return bad("the message is shorter than NSSI's prefix");
  auto prefix = xdr::decode<Prefix>(message.first(kPrefixBytes));
  if (prefix.ok() && !known(prefix->kind)) return bad("the message is not NSSI's, or of another version of it");
  return prefix;
}

nessie::Result<Request> decode_request(std::span<const std::byte> message) {
  auto request = xdr::decode<Request>(message);
  if (!request.ok()) return request;
  if (request->prefix.kind != Kind::kRequest) return bad("the message is not a request");
  if (!sound(request->data) || !sound(request->long_args)) return bad("a buffer's rights are not known ones");
  if (request->long_args && !request->args.empty()) return bad("a request has both short and long arguments");
  return request;
}

nessie::Result<Result> decode_result(std::span<const std::byte> message) {
  auto result = xdr::decode<Result>(message);
  if (!result.ok()) return result;
  if (result->prefix.kind != Kind::kResult) return bad("the message is not a result");
  if (!sound(result->long_result)) return bad("a buffer's rights are not known ones");
  if (result->failure && (result->failure->code == 0 || result->failure->scope > 3))
    return bad("a result's error is not one");
  return result;
}

Failure to_failure(const Error &error) {
  return {static_cast<std::uint32_t>(error.code), static_cast<std::uint32_t>(error.scope), error.cause,
          std::string_view(error.message).substr(0, kMaxErrorText)};
}

Error to_error(const Failure &failure) {
  return {static_cast<Code>(failure.code), std::string(failure.message), static_cast<Scope>(failure.scope),
          failure.cause};
}

}  // namespace nssi::wire
