// SPDX-License-Identifier: BSD-3-Clause
#include "many_peers.hpp"

#include "machine.hpp"

namespace bench {

using nessie::Status;

void Holder::wait_for_peers(int count) {
  while (peers_ < count && trouble().ok()) turn();
}

void Holder::answer(std::uint64_t count) {
  for (auto awaited = answered_ + count; answered_ < awaited && trouble().ok();) turn();
  while (last_.value != 0 && endpoint().has_unsent(last_) && trouble().ok()) turn();  // the last answers wait for room
}

void Holder::on_message(nnti::PeerId from, std::span<const std::byte> message) {
  ++answered_;
  last_ = from;
  if (auto status = endpoint().send(from, message); !status.ok()) give_up(status.error());
}

Status Guests::connect(int count) {
  auto url = board_.address_of(kHolder);
  while (static_cast<int>(guests_.size()) < count) {
    auto guest = std::make_unique<Leader>();
    if (auto status = guest->open(options_, team_, board_, false); !status.ok()) return status;
    if (auto status = guest->connect(url, Leader::Invitation::kNone); !status.ok()) return status;
    guests_.push_back(std::move(guest));
  }
  return {};
}

nessie::Result<std::unique_ptr<Board>> run_holder_and_guests(const Options &options, const Waiting &waiting,
                                                             const HolderAndGuests &duties) {
  if (auto status = check_forked(options.transport); !status.ok()) return status.error();
  allow_many_descriptors();
  const Team team{.waiting = waiting};
  return run_crew(2, Housing::kProcesses, std::chrono::seconds(300), [&](Board &all, int member) -> Status {
    Pin pin(member);
    if (member == kGuests) {
      Guests guests(options, team, all);
      return duties.visit(guests, all, all.lane(member));
    }
    Holder holder;
    if (auto status = holder.open(options, team, all, true); !status.ok()) return status;
    all.publish_address(kHolder, holder.endpoint().url());
    auto status = duties.hold(holder, all, all.lane(member));
    if (!holder.trouble().ok()) return holder.trouble();
    return status;
  });
}

}  // namespace bench
