// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/target.hpp"

#include "services/streams/sinks/forward.hpp"
#include "services/streams/sinks/record.hpp"
#include "services/streams/sinks/send.hpp"

namespace nessie::streams::sinks {

namespace {

constexpr std::string_view kTcp = "tcp://";

/// Of one that has more than host and port, or several URLs, it is servers of Nessie's that are meant.
bool is_socket(std::string_view where) {
  return where.starts_with(kTcp) && where.find_first_of(";?") == std::string_view::npos;
}

}  // namespace

Result<Target> Target::file(std::string path, bool append) {
  Target target;
  target.where_ = std::move(path);
  target.append_ = append;
  if (target.where_.empty()) return Error{Code::kInvalidArgument, "a file needs a name"};
  return target;
}

Result<Target> Target::place(std::string where, std::string name, bool append, std::uint64_t bytes_per_s) {
  Target target;
  target.kind_ = is_socket(where) ? Kind::kSocket : Kind::kServers;
  if (target.kind_ == Kind::kSocket)
    if (const auto parsed = HostPort::parse(std::string_view(where).substr(kTcp.size())); !parsed.ok())
      return parsed.error();
  if (where.empty()) return Error{Code::kInvalidArgument, "it has to be said where the steps are to go"};
  target.where_ = std::move(where), target.name_ = std::move(name);
  target.append_ = append, target.bytes_per_s_ = bytes_per_s;
  return target;
}

Result<std::unique_ptr<Sink>> Target::open(const Origin &origin, const SinkContext &context) const {
  if (kind_ == Kind::kFile) {
    auto recorder = Recorder::open({where_, origin, append_});
    if (!recorder.ok()) return recorder.error();
    return std::unique_ptr<Sink>(*std::move(recorder));
  }
  const auto name = name_.empty() ? origin.stream : name_;
  if (kind_ == Kind::kSocket) {
    const auto to = HostPort::parse(std::string_view(where_).substr(kTcp.size()));
    if (!to.ok()) return to.error();
    return std::unique_ptr<Sink>(
        new Sender({*to, {name, origin.identity}, bytes_per_s_, context.patience, context.stop}));
  }
  auto forwarder =
      Forwarder::open({where_, name, origin, append_, bytes_per_s_, context.patience, context.stop, context.say});
  if (!forwarder.ok()) return forwarder.error();
  return std::unique_ptr<Sink>(*std::move(forwarder));
}

}  // namespace nessie::streams::sinks
