// SPDX-License-Identifier: BSD-3-Clause
// The shared space: each name is one server's.
#include <services/streams/client/convert.hpp>
#include <services/streams/client/lent.hpp>
#include <services/streams/client/session.hpp>

#include <base/random.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace nessie::streams {

namespace wire = ::streams;

class SpaceState {
 public:
  SpaceState(std::shared_ptr<wire::Session> session, std::shared_ptr<wire::Place> place, std::uint32_t servers)
      : session(std::move(session)), place(std::move(place)), servers_(servers) {}

  /// FNV-1a: the same in all programs.
  std::uint32_t server_of(std::string_view name) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return static_cast<std::uint32_t>(hash % servers_);
  }
  template <class T, class Call> nssi::Outcome<T> ask(std::string_view name, Deadline deadline, const Call &call) {
    return place->ask<T>(server_of(name), deadline, call, [](const auto &) { return Status(); });
  }
  const std::shared_ptr<wire::Session> session;
  const std::shared_ptr<wire::Place> place;

 private:
  const std::uint32_t servers_;
};

namespace {

Status check(std::string_view name, Type type, const wire::Box &box) {
  if (auto status = wire::check_name("array", name); !status.ok()) return status;
  if (size_of(type) == 0 || !wire::is_box(box))
    return Error{Code::kInvalidArgument, "the type does not exist, or the box has a negative start or count"};
  return {};
}

}  // namespace

Space::Space(std::unique_ptr<SpaceState> state) : state_(std::move(state)) {}
Space::Space(Space &&) noexcept = default;
Space &Space::operator=(Space &&) noexcept = default;
Space::~Space() = default;

Result<Space> Space::open(std::string_view at, Deadline deadline) {
  auto session = wire::Session::get();
  if (!session.ok()) return session.error();
  auto place = wire::find_place(*session, at, deadline);
  if (!place.ok()) return place.error();
  const auto servers = (*place)->servers(deadline);
  if (!servers.ok()) return servers.error();
  return Space(std::make_unique<SpaceState>(*session, *place, *servers));
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
  auto lent = wire::Lent::make(*state_->session, is_small ? std::span<std::byte>() : memory, nnti::Rights::kRemoteRead);
  if (!lent.ok()) return lent.error();
  return state_->ask<void>(name, deadline, [&](wire::Client &client, nssi::CallOptions options) {
    args.patience_ms = wire::patience_until(deadline);
    lent->add_to(options);
    return client.space_put(args, options);
  });
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
  auto lent =
      wire::Lent::make(*state_->session, {static_cast<std::byte *>(destination), bytes}, nnti::Rights::kRemoteWrite);
  if (!lent.ok()) return lent.error();
  auto got = state_->ask<wire::GetResult>(name, deadline, [&](wire::Client &client, nssi::CallOptions options) {
    args.patience_ms = wire::patience_until(deadline);
    lent->add_to(options);
    return client.space_get(args, options);
  });
  return got.ok() ? Status() : Status(got.error());
}

Result<std::uint64_t> Space::newest(std::string_view name, Deadline deadline) {
  if (auto status = wire::check_name("array", name); !status.ok()) return status.error();
  const wire::Name wanted{std::string(name)};
  return state_->ask<std::uint64_t>(name, deadline, [&](wire::Client &client, const nssi::CallOptions &options) {
    return client.space_newest(wanted, options);
  });
}

}  // namespace nessie::streams
