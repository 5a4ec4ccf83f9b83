// SPDX-License-Identifier: BSD-3-Clause
// The shared space: what is put into it, and gets that wait until all that they want is there.
#include <services/streams/server/server.hpp>

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace streams {

nssi::Outcome<void> Server::space_put(Request &request, const SpacePutArgs &args) {
  const auto deadline = Deadline::in(std::chrono::milliseconds(args.patience_ms));
  const auto refused = [&]() -> Status { return space_.has_put(args) ? Status() : space_.check_put(args); };
  if (space_.has_put(args)) return Status();
  if (auto status = refused(); !status.ok()) return status;
  const auto size = static_cast<std::uint64_t>(elements_of(args.box)) * size_of(args.type);
  if ((args.data.empty() ? request.data_bytes() : args.data.size()) < size)
    return Error{Code::kOutOfRange, "the caller's data are less than the box"};
  if (!store_->has_room(size)) settle_all();
  auto waited = store_->await_room(request, size, deadline, [&] { return store_->has_room(size); });
  if (waited.code() == Code::kTimedOut)
    return Error{Code::kBusy, "the server has no room for it: raise streams.memory, or put less"};
  if (!waited.ok()) return waited;
  HeldBytes held;
  if (!args.data.empty() || size == 0) {
    auto copy = std::make_shared<const std::vector<std::byte>>(args.data);
    held = {std::span(*copy), copy};
  } else {
    auto pulled = director_.pull(request, 0, size, {}, request.deadline());
    if (!pulled.ok()) return pulled.error();
    auto kept = std::make_shared<const nssi::Pulled>(*std::move(pulled));
    held = {kept->bytes(), kept};
  }
  if (space_.has_put(args)) return Status();
  if (auto status = refused(); !status.ok()) return status;  // others may have put it meanwhile
  space_.put(args, store_->keep(std::move(held), space_tally_));
  put_.notify_all();
  return Status();
}

nssi::Outcome<GetResult> Server::space_get(Request &request, const SpaceGetArgs &args) {
  const auto deadline = Deadline::in(std::chrono::milliseconds(args.patience_ms));
  for (;;) {
    if (auto status = space_.check_get(args); !status.ok()) return status.error();
    const auto covered = space_.covered(args), wanted = elements_of(args.box);
    if (covered == wanted) break;
    if (auto status = request.check(); !status.ok()) return status.error();
    if (deadline.passed() || is_ending_)
      return Error{Code::kTimedOut, fmt::format("of the {} elements of {} in version {}, {} were put", wanted,
                                                streams::describe(args.name, args.box), args.version_number, covered)};
    if (auto status = put_.wait(deadline); status.code() == Code::kCancelled) return status.error();
  }
  VariableArgs variable;
  variable.name = args.name;
  variable.type = args.type;
  if (request.data_bytes() < bytes_of(variable, args.box))
    return Error{Code::kOutOfRange, "the caller's buffer is too small for the box"};
  auto pushed = push(request, variable, space_.blocks(args), args.box);
  if (!pushed.ok()) return pushed.error();
  return GetResult{static_cast<std::uint64_t>(*pushed)};
}

nssi::Outcome<std::uint64_t> Server::space_newest(Request &, const Name &name) { return space_.newest(name); }

}  // namespace streams
