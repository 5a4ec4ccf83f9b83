// SPDX-License-Identifier: BSD-3-Clause
// The shared space: what is put into it, and gets that wait until all that they want is there.
//
// Design notes. A put goes to any server, which keeps it and tells the name's account; that is at one of the servers,
// chosen by the name. A get asks there, waits there, gets what that server has, and hears who has the rest. What a
// server has put on its shelf and the account has agreed to, but not answered yet, is waited for.
#include <services/streams/server/server.hpp>

#include <service/connection.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace streams {

namespace {

constexpr std::chrono::seconds kToTellHome{30};

Status check_array(const Name &name, ElementType type, const Box &box) {
  if (auto status = check_name("array", name); !status.ok()) return status;
  if (size_of(type) != 0 && is_box(box)) return {};
  return Error{Code::kInvalidArgument, "the type does not exist, or the box has a negative start or count"};
}

std::uint64_t elements_in(const std::vector<Block> &blocks, const Box &box) {
  std::uint64_t elements = 0;
  for (const auto &block : blocks) elements += static_cast<std::uint64_t>(elements_of(*intersection(block.box, box)));
  return elements;
}

}  // namespace

// --- puts -------------------------------------------------------------------------------------------------------------

nssi::Outcome<void> Server::space_put(Request &request, const SpacePutArgs &args) {
  if (auto status = check_array(args.name, args.type, args.box); !status.ok()) return status;
  if (space_.has(args)) return Status();
  const SpaceNote note{args.name, args.version_number, args.type, args.box, args.put, options_.index, incarnation_};
  const auto home = home_of(args.name, options_.servers);
  if (home == options_.index)
    if (auto status = names_.check(note); !status.ok()) return status;
  auto brought = bring_to_space(request, args);
  if (!brought.ok()) return brought.error();
  if (space_.has(args)) return Status();
  if (home == options_.index) {
    if (auto status = take_note(note); !status.ok()) return status;
    space_.put(args, *std::move(brought));
    return Status();
  }
  ++being_noted_;
  auto status = tell_home(home, note, request.deadline());
  --being_noted_;
  if (status.ok() && !space_.has(args)) space_.put(args, *std::move(brought));
  noted_.notify_all();
  return status;
}

/// The data, pulled once there is room for them.
Result<std::shared_ptr<Chunk>> Server::bring_to_space(Request &request, const SpacePutArgs &args) {
  const auto deadline = request.deadline().earlier(Deadline::in(std::chrono::milliseconds(args.patience_ms)));
  const auto size = static_cast<std::uint64_t>(elements_of(args.box)) * size_of(args.type);
  if ((args.data.empty() ? request.data_bytes() : args.data.size()) < size)
    return Error{Code::kOutOfRange, "the caller's data are less than the box"};
  if (!store_->has_room(size)) ask_for_room();
  auto waited = store_->await_room(request, size, deadline, [&] { return store_->has_room(size); });
  if (waited.code() == Code::kTimedOut)
    return Error{Code::kBusy, fmt::format("the server holds {} MiB of {} MiB{}, and has no room for {} more bytes: "
                                          "raise streams.memory, keep fewer versions (streams.space_versions), or have "
                                          "readers end their steps",
                                          store_->used_bytes() >> 20, store_->limit_bytes() >> 20,
                                          options_.log_path.empty() ? "" : ", and its log is full", size)};
  if (!waited.ok()) return waited.error();
  if (!args.data.empty() || size == 0) {
    auto copy = std::make_shared<const std::vector<std::byte>>(args.data);
    const std::span<const std::byte> bytes(*copy);
    return store_->keep({bytes, std::move(copy)}, space_.tally());
  }
  auto pulled = director_.pull(request, 0, size, {}, request.deadline());
  if (!pulled.ok()) return pulled.error();
  auto held = std::make_shared<const nssi::Pulled>(*std::move(pulled));
  const std::span<const std::byte> bytes = held->bytes();
  return store_->keep({bytes, std::move(held)}, space_.tally());
}

/// At the account's server.
Status Server::take_note(const SpaceNote &note) {
  const auto oldest = names_.oldest(note.name);
  if (auto status = names_.take(note); !status.ok()) return status;
  for (auto *get : space_gets_) {
    if (get->args.name != note.name || get->args.version_number != note.version_number) continue;
    const bool is_same = get->args.type == note.type && get->args.box.count.size() == note.box.count.size();
    if (const auto part = is_same ? intersection(get->args.box, note.box) : std::nullopt)
      get->missing -= elements_of(*part);
    if (!is_same || get->missing <= 0) get->changed.notify_all();
  }
  const auto first = names_.oldest(note.name);
  if (first == oldest) return {};
  for (auto *get : space_gets_)
    if (get->args.name == note.name && get->args.version_number < first) get->changed.notify_all();
  space_.drop_before(note.name, first);
  nssi::CallOptions options;
  options.idempotent = options.one_way = true;
  for (const auto &[index, holder] : holders_)
    (void)STREAMS::CURRENT::Client(runtime_, holder.peer).space_keep_async({note.name, first}, options);
  store_->notify();
  return {};
}

nssi::Outcome<void> Server::space_note(Request &request, const SpaceNote &args) {
  if (auto status = check_array(args.name, args.type, args.box); !status.ok()) return status;
  if (args.server >= options_.servers || home_of(args.name, options_.servers) != options_.index)
    return Error{Code::kInvalidArgument,
                 "this server does not keep account of that name: start all servers of one "
                 "group with the same number of servers"};
  if (const auto known = holders_.find(args.server);
      known != holders_.end() && known->second.incarnation != args.incarnation)
    lose_holder(args.server);
  holders_[args.server] = {request.caller(), args.incarnation};
  return take_note(args);
}

nssi::Outcome<void> Server::space_keep(Request &, const SpaceKeptArgs &args) {
  space_.drop_before(args.name, args.first);
  noted_.notify_all();
  store_->notify();
  return Status();
}

// --- servers among themselves -----------------------------------------------------------------------------------------

/// Of another server that this one has to tell something.
Result<nnti::PeerId> Server::connect_server(std::uint32_t index, Deadline deadline) {
  if (const auto known = servers_.find(index); known != servers_.end()) return known->second;
  const Error away{Code::kUnavailable, fmt::format("server {} of streams is away", index), nessie::Scope::kService};
  const auto first = servers_.find(0);
  if (is_first() || first == servers_.end()) return away;
  const auto hello =
      STREAMS::CURRENT::Client(runtime_, first->second).hello({PROTOCOL}, {.deadline = deadline, .idempotent = true});
  if (!hello.ok()) return hello.error();
  if (index >= hello->servers.size() || hello->servers[index].empty()) return away;
  const auto peer = runtime_.connect(hello->servers[index], deadline);
  if (!peer.ok()) return peer;
  const auto [at, is_new] = servers_.try_emplace(index, *peer);
  if (!is_new && at->second != *peer) runtime_.disconnect(*peer);  // another fiber was quicker
  return at->second;
}

Status Server::tell_home(std::uint32_t home, const SpaceNote &note, Deadline deadline) {
  for (;;) {
    const auto peer = connect_server(home, deadline.earlier(Deadline::in(kToTellHome)));
    Status status = peer.ok() ? Status(STREAMS::CURRENT::Client(runtime_, *peer)
                                           .space_note(note, {.deadline = deadline, .idempotent = true}))
                              : Status(peer.error());
    if (status.ok() || deadline.passed() || is_ending_) return status;
    if (status.code() != Code::kPeerLost && status.code() != Code::kUnavailable) return status;
    if (peer.ok())
      if (const auto known = servers_.find(home); known != servers_.end() && known->second == *peer)
        servers_.erase(known);
    const auto wait = Deadline::in(std::chrono::milliseconds(50)).earlier(deadline);
    if (auto paused = nessie::service::pause(runtime_, wait); !paused.ok()) return paused;
  }
}

/// A fiber: the server that keeps account of some names was started anew, or was out of reach: what is here of them.
void Server::tell_all_to(std::uint32_t home) {
  for (auto note : space_.notes(home, options_.servers)) {
    note.server = options_.index;
    note.incarnation = incarnation_;
    Status status;
    do {
      status = tell_home(home, note, Deadline::in(kToTellHome));
    } while (!is_ending_ && (status.code() == Code::kPeerLost || status.code() == Code::kUnavailable ||
                             status.code() == Code::kTimedOut));
    if (status.code() == Code::kNotFound) space_.drop_before(note.name, note.version_number + 1);
    if (is_ending_ || status.code() == Code::kCancelled) return;
  }
}

/// What it had is lost: whoever waits for it hears so.
void Server::lose_holder(std::uint32_t server) {
  names_.lose(server);
  for (auto *get : space_gets_) get->changed.notify_all();
}

// --- gets -------------------------------------------------------------------------------------------------------------

nssi::Outcome<SpaceGetResult> Server::space_get(Request &request, const SpaceGetArgs &args) {
  if (auto status = check_array(args.name, args.type, args.box); !status.ok()) return status.error();
  VariableArgs variable;
  variable.name = args.name;
  variable.type = args.type;
  if (request.data_bytes() < bytes_of(variable, args.box))
    return Error{Code::kOutOfRange, "the caller's buffer is too small for the box"};
  SpaceGetResult result;
  if (args.wanted == 0) {
    const auto cover = await_cover(request, args);
    if (!cover.ok()) return cover.error();
    result.lost = static_cast<std::uint64_t>(cover->lost);
    if (result.lost > 0) return result;
    for (const auto &holder : cover->holders)
      if (holder.server != options_.index) result.others.push_back(holder);
  } else if (auto status = await_noted(request, args); !status.ok()) {
    return status.error();
  }
  auto pushed = push(request, variable, space_.blocks(args), args.box);
  if (!pushed.ok()) return pushed.error();
  result.elements = static_cast<std::uint64_t>(*pushed);
  return result;
}

/// At the account's server: who has what, when all of the box is there, or some of it is lost.
Result<SpaceAccount::Cover> Server::await_cover(Request &request, const SpaceGetArgs &args) {
  const auto deadline = request.deadline().earlier(Deadline::in(std::chrono::milliseconds(args.patience_ms)));
  const auto wanted = elements_of(args.box);
  for (;;) {
    if (auto status = names_.check_get(args); !status.ok()) return status.error();
    auto cover = names_.cover(args);
    if (cover.elements == wanted || cover.lost > 0) return cover;
    if (auto status = request.check(); !status.ok()) return status.error();
    if (deadline.passed() || is_ending_)
      return Error{Code::kTimedOut,
                   fmt::format("of the {} elements of {} in version {}, {} were put", wanted,
                               streams::describe(args.name, args.box), args.version_number, cover.elements)};
    WaitingGet waiting{args, wanted - cover.elements, WaitQueue(runtime_)};
    const auto at = space_gets_.insert(space_gets_.end(), &waiting);
    const auto status = waiting.changed.wait(deadline);
    space_gets_.erase(at);
    if (status.code() == Code::kCancelled) return status.error();
  }
}

/// At another one, which the account has said has some: its own put may not have heard yet that it was taken.
Status Server::await_noted(Request &request, const SpaceGetArgs &args) {
  while (elements_in(space_.blocks(args), args.box) < args.wanted) {
    if (auto status = request.check(); !status.ok()) return status;
    if (being_noted_ == 0 || is_ending_ || space_.is_gone(args.name, args.version_number))
      return Error{Code::kNotFound,
                   fmt::format("version {} of '{}' is gone", args.version_number, std::string_view(args.name))};
    if (auto status = noted_.wait(request.deadline()); !status.ok()) return status;
  }
  return {};
}

nssi::Outcome<std::uint64_t> Server::space_newest(Request &, const Name &name) { return names_.newest(name); }

}  // namespace streams
