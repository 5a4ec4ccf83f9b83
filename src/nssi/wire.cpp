// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/wire.hpp>

namespace nssi::wire {

using nessie::Code;
using nessie::Error;
using nessie::Scope;

namespace {

constexpr std::size_t kMaxErrorText = 2048;

bool sound(const std::optional<Buffer> &buffer) { return !buffer || buffer->remote.rights <= nnti::Rights::kReadWrite; }

Error bad(const char *message) { return Error{Code::kBadMessage, message}; }

}  // namespace

nessie::Status decode_request(std::span<const std::byte> message, Request &request) {
  auto status = xdr::decode_into(message, request);
  if (!status.ok()) return status;
  if (request.prefix.kind != Kind::kRequest) return bad("the message is not a request");
  if (!sound(request.data) || !sound(request.long_args)) return bad("a buffer's rights are not known ones");
  if (request.long_args && !request.args.empty()) return bad("a request has both short and long arguments");
  return status;
}

nessie::Status decode_result(std::span<const std::byte> message, Result &result) {
  auto status = xdr::decode_into(message, result);
  if (!status.ok()) return status;
  if (result.prefix.kind != Kind::kResult) return bad("the message is not a result");
  if (!sound(result.long_result)) return bad("a buffer's rights are not known ones");
  if (result.failure && (result.failure->code == 0 || result.failure->scope > 3))
    return bad("a result's error is not one");
  return status;
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
