// SPDX-License-Identifier: BSD-3-Clause
// The shared space: what is put goes to servers of this node, in turn; who wants it asks the one that keeps account of
// the name, and those that it says have it.
#include <services/streams/client/convert.hpp>
#include <services/streams/client/lent.hpp>
#include <services/streams/client/session.hpp>

#include <base/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace nessie::streams {

namespace wire = ::streams;

namespace {

constexpr std::chrono::seconds kToReach{2};  ///< a server that has something, before it is held for lost

Status check(std::string_view name, Type type, const wire::Box &box) {
  if (auto status = wire::check_name("array", name); !status.ok()) return status;
  if (size_of(type) == 0 || !wire::is_box(box))
    return Error{Code::kInvalidArgument, "the type does not exist, or the box has a negative start or count"};
  return {};
}

Error lost(std::string message) { return {Code::kPeerLost, std::move(message), nessie::Scope::kService}; }

Error lost_elements(const wire::SpaceGetArgs &args, std::uint64_t elements) {
  return lost(
      fmt::format("of the {} elements of {} in version {}, {} are lost with the server that had them: put them "
                  "again, or go on with another version",
                  wire::elements_of(args.box), wire::describe(args.name, args.box), args.version_number, elements));
}

}  // namespace

class SpaceState {
 public:
  SpaceState(std::shared_ptr<wire::Session> session, std::shared_ptr<wire::Place> place, std::uint32_t servers,
             std::vector<std::uint32_t> near)
      : session_(std::move(session)),
        place_(std::move(place)),
        servers_(servers),
        near_(std::move(near)),
        next_(nessie::random_u64()) {}

  Status put(const wire::SpacePutArgs &args, const wire::Lent &lent, Deadline deadline);
  Status get(const wire::SpaceGetArgs &args, const wire::Lent &lent, Deadline deadline);
  Result<std::uint64_t> newest(const wire::Name &name, Deadline deadline);
  wire::Session &session() { return *session_; }

 private:
  nssi::Outcome<wire::SpaceGetResult> get_at_home(wire::SpaceGetArgs args, const wire::Lent &lent, Deadline deadline);
  Result<bool> get_from(const std::vector<wire::SpaceHolder> &holders, wire::SpaceGetArgs args, const wire::Lent &lent,
                        Deadline deadline);
  const std::shared_ptr<wire::Session> session_;
  const std::shared_ptr<wire::Place> place_;
  const std::uint32_t servers_;
  const std::vector<std::uint32_t> near_;  ///< servers to which what is put goes
  std::uint64_t next_;
  std::map<std::uint32_t, std::uint64_t> incarnations_;  ///< of servers that were asked
};

Status SpaceState::put(const wire::SpacePutArgs &args, const wire::Lent &lent, Deadline deadline) {
  return place_->ask<void>(
      near_[next_++ % near_.size()], deadline,
      [&](wire::Client &client, nssi::CallOptions options) {
        auto now = args;
        now.patience_ms = wire::patience_until(deadline);
        lent.add_to(options);
        return client.space_put(now, options);
      },
      [](const auto &) { return Status(); });
}

/// At the server that keeps account of the name. One that was started anew has forgotten what there was.
nssi::Outcome<wire::SpaceGetResult> SpaceState::get_at_home(wire::SpaceGetArgs args, const wire::Lent &lent,
                                                            Deadline deadline) {
  const auto home = wire::home_of(args.name, servers_);
  bool is_anew = false;
  auto got = place_->ask<wire::SpaceGetResult>(
      home, deadline,
      [&](wire::Client &client, nssi::CallOptions options) {
        args.patience_ms = wire::patience_until(deadline);
        lent.add_to(options);
        return client.space_get(args, options);
      },
      [&](const auto &peer) -> Status {
        const auto known = incarnations_.try_emplace(home, peer.incarnation).first;
        is_anew = std::exchange(known->second, peer.incarnation) != peer.incarnation;
        return is_anew ? Status(Error{Code::kUnsupported, "the server was started anew"}) : Status();
      });
  if (!is_anew) return got;
  return lost(
      fmt::format("server {} of streams, which kept account of '{}', was started anew: what it had in memory is "
                  "lost",
                  home, args.name));
}

/// What others have. False: one of them has it no more.
Result<bool> SpaceState::get_from(const std::vector<wire::SpaceHolder> &holders, wire::SpaceGetArgs args,
                                  const wire::Lent &lent, Deadline deadline) {
  nssi::CallOptions options;
  options.deadline = deadline;
  options.idempotent = true;
  lent.add_to(options);
  std::vector<std::pair<wire::Place::Peer, nssi::Future<wire::SpaceGetResult>>> calls;
  for (const auto &holder : holders) {
    const auto peer = place_->connect(holder.server, Deadline::in(kToReach).earlier(deadline));
    if (!peer.ok() || peer->incarnation != holder.incarnation) return lost_elements(args, holder.elements);
    args.wanted = holder.elements;
    calls.emplace_back(*peer, wire::Client(session_->runtime(), peer->id).space_get_async(args, options));
  }
  Status status;
  bool is_all = true;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto got = calls[i].second.wait();
    if (wire::may_come_back(got.code())) place_->lose(holders[i].server, calls[i].first.generation);
    if (got.code() == Code::kNotFound || wire::may_come_back(got.code()))
      is_all = false;
    else if (!got.ok())
      status = got.error();
  }
  if (!status.ok()) return status.error();
  return is_all;
}

Status SpaceState::get(const wire::SpaceGetArgs &args, const wire::Lent &lent, Deadline deadline) {
  for (;;) {
    const auto here = get_at_home(args, lent, deadline);
    if (!here.ok()) return here.error();
    if (here->lost > 0) return lost_elements(args, here->lost);
    const auto rest = get_from(here->others, args, lent, deadline);
    if (!rest.ok() || *rest) return rest.ok() ? Status() : Status(rest.error());
    const auto wait = Deadline::in(std::chrono::milliseconds(20)).earlier(deadline);
    if (auto paused = nessie::service::pause(session_->runtime(), wait); !paused.ok()) return paused;
  }
}

Result<std::uint64_t> SpaceState::newest(const wire::Name &name, Deadline deadline) {
  return place_->ask<std::uint64_t>(
      wire::home_of(name, servers_), deadline,
      [&](wire::Client &client, const nssi::CallOptions &options) { return client.space_newest(name, options); },
      [](const auto &) { return Status(); });
}

// --- the interface ----------------------------------------------------------------------------------------------------

Space::Space(std::unique_ptr<SpaceState> state) : state_(std::move(state)) {}
Space::Space(Space &&) noexcept = default;
Space &Space::operator=(Space &&) noexcept = default;
Space::~Space() = default;

Result<Space> Space::open(std::string_view at, Deadline deadline) {
  auto session = wire::Session::get();
  if (!session.ok()) return session.error();
  auto place = wire::find_place(*session, at, {}, deadline);
  if (!place.ok()) return place.error();
  const auto servers = (*place)->servers(deadline);
  if (!servers.ok()) return servers.error();
  auto near = (*place)->nearest(deadline);
  if (!near.ok()) return near.error();
  return Space(std::make_unique<SpaceState>(*session, *place, *servers, *std::move(near)));
}

Status Space::put(std::string_view name, std::uint64_t version, Type type, const Box &box, const void *data,
                  Deadline deadline) {
  wire::SpacePutArgs args;
  args.name = std::string(name);
  args.version_number = version;
  args.type = wire::to_wire(type);
  args.box = wire::to_wire(box);
  args.put = nessie::random_u64();
  if (auto status = check(name, type, args.box); !status.ok()) return status;
  const auto bytes = static_cast<std::size_t>(wire::elements_of(args.box)) * size_of(type);
  const std::span<std::byte> memory(static_cast<std::byte *>(const_cast<void *>(data)), bytes);  // it is only read
  const bool is_small = bytes <= wire::MOST_INLINE;
  if (is_small) args.data.assign(memory.begin(), memory.end());
  const auto lent =
      wire::Lent::make(state_->session(), is_small ? std::span<std::byte>() : memory, nnti::Rights::kRemoteRead);
  return lent.ok() ? state_->put(args, *lent, deadline) : Status(lent.error());
}

Status Space::get(std::string_view name, std::uint64_t version, Type type, const Box &box, void *destination,
                  std::size_t size_bytes, Deadline deadline) {
  wire::SpaceGetArgs args;
  args.name = std::string(name);
  args.version_number = version;
  args.type = wire::to_wire(type);
  args.box = wire::to_wire(box);
  if (auto status = check(name, type, args.box); !status.ok()) return status;
  const auto bytes = static_cast<std::size_t>(wire::elements_of(args.box)) * size_of(type);
  if (size_bytes < bytes)
    return Error{Code::kOutOfRange, fmt::format("{} has {} bytes, and the memory for it {}",
                                                wire::describe(name, args.box), bytes, size_bytes)};
  if (bytes == 0) return {};
  const auto lent =
      wire::Lent::make(state_->session(), {static_cast<std::byte *>(destination), bytes}, nnti::Rights::kRemoteWrite);
  return lent.ok() ? state_->get(args, *lent, deadline) : Status(lent.error());
}

Result<std::uint64_t> Space::newest(std::string_view name, Deadline deadline) {
  if (auto status = wire::check_name("array", name); !status.ok()) return status.error();
  return state_->newest(wire::Name{std::string(name)}, deadline);
}

}  // namespace nessie::streams
