// SPDX-License-Identifier: BSD-3-Clause
#include "nnti_team.hpp"

#include "machine.hpp"
#include "page_aligned.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace bench {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr auto kLongestWait = std::chrono::milliseconds(100);
constexpr auto kSilence = std::chrono::seconds(30);
constexpr auto kTeamLimit = std::chrono::seconds(300);
constexpr unsigned kPollsPerLook = 4096, kWaitsPerLook = 8;

/// Lends memory, and answers messages, until its leaders have left.
class Follower : public Side, nnti::Completion {
 public:
  explicit Follower(const Team &team) : team_(team), memory_(team.memory_bytes, std::byte{1}) {}
  Status serve(Board &board, int member);

  void on_message(nnti::PeerId from, std::span<const std::byte> message) override;
  void on_peer_connected(nnti::PeerId peer) override;
  void on_peer_lost(nnti::PeerId peer, const Error &) override { ++left_, received_.erase(peer.value); }

 protected:
  bool is_impatient() const override { return false; }

 private:
  int expected() const { return team_.leaders / team_.followers; }
  void obey(nnti::PeerId leader, std::span<const std::byte> message);
  void answer(nnti::PeerId leader, std::span<const std::byte> message);
  void on_complete(Status status) override;

  const Team &team_;
  PageAligned<std::byte> memory_;
  std::optional<nnti::RegisteredBuffer> mapped_, application_;
  std::map<std::uint64_t, int> received_;
  nnti::PeerId ordered_by_;
  int left_ = 0;
};

void Follower::on_peer_connected(nnti::PeerId peer) {
  auto mapped = mapped_->describe_for(peer), application = application_->describe_for(peer);
  if (!mapped || !application) return give_up(mapped ? application.error() : mapped.error());
  LentMemory lent{*mapped, *application};
  auto status = endpoint().send(peer, std::as_bytes(std::span(&lent, 1)));
  if (!status.ok()) give_up(status.error());
}

void Follower::answer(nnti::PeerId leader, std::span<const std::byte> message) {
  if (auto status = endpoint().send(leader, message); !status.ok()) give_up(status.error());
}

void Follower::on_message(nnti::PeerId from, std::span<const std::byte> message) {
  if (team_.takes_orders) return obey(from, message);
  if (team_.answer_every > 1 && ++received_[from.value] % team_.answer_every != 0) return;
  answer(from, message);
}

void Follower::obey(nnti::PeerId leader, std::span<const std::byte> message) {
  PutOrder order;
  if (message.size() != sizeof order) return give_up({Code::kBadMessage, "that is no order"});
  std::memcpy(&order, message.data(), sizeof order);
  ordered_by_ = leader;
  endpoint().put(leader, order.into, 0, std::span(memory_).first(std::min(order.size_bytes, memory_.size())), *this);
}

void Follower::on_complete(Status status) {
  if (!status.ok()) return;  // the leader, if it is still there, knows
  answer(ordered_by_, {});
}

Status Follower::serve(Board &board, int member) {
  auto mapped = endpoint().allocate(memory_.size(), nnti::Rights::kReadWrite);
  auto application = endpoint().register_memory(memory_, nnti::Rights::kReadWrite);
  if (!mapped) return mapped.error();
  if (!application) return application.error();
  std::ranges::fill(mapped->bytes(), std::byte{1});
  mapped_ = std::move(*mapped);
  application_ = std::move(*application);
  board.publish_address(member, endpoint().url());
  while (left_ < expected() && trouble().ok()) turn();
  mapped_.reset();
  application_.reset();
  return trouble();
}

Status lead_once(const Options &options, const Team &team, Board &board, int member, const Lead &lead) {
  Leader leader;
  if (auto status = leader.open(options, team, board, false); !status.ok()) return status;
  auto url = board.address_of(team.leaders + member % team.followers);
  if (auto status = leader.connect(url); !status.ok()) return status;
  if (!board.meet(team.leaders, 1)) return Error{Code::kTimedOut, "not all processes of the workload came"};
  auto status = lead(leader, board.lane(member));
  leader.endpoint().disconnect(leader.follower());
  if (!leader.trouble().ok()) return leader.trouble();
  return status;
}

/// A leader and its follower on neighbouring cores; the clients of one server everywhere.
int core_of(const Team &team, int member) {
  if (team.leaders != team.followers) return member;
  return member < team.leaders ? 2 * member : 2 * (member - team.leaders) + 1;
}

}  // namespace

// --- either side -----------------------------------------------------------------------------------------------------

Status Side::open(const Options &options, const Team &team, Board &board, bool listen) {
  board_ = &board;
  polls_ = team.waiting.polls;
  yields_ = team.leaders + team.followers > static_cast<int>(usable_cores().size());
  auto opened = nnti::Endpoint::open(options.endpoint(listen, team.waiting.spin_us), *this);
  if (!opened) return opened.error();
  endpoint_ = std::move(*opened);
  return {};
}

void Side::turn() {
  if (endpoint_->progress() > 0) {
    idle_turns_ = 0;
  } else if (!polls_) {
    endpoint_->wait(Deadline::in(kLongestWait));
    if (++idle_turns_ % kWaitsPerLook == 0) look_around(idle_turns_ == kWaitsPerLook);
  } else {
    if (yields_) sched_yield();
    if (++idle_turns_ % kPollsPerLook == 0) look_around(idle_turns_ == kPollsPerLook);
  }
}

void Side::look_around(bool first_since_something_moved) {
  if (board_->stopped()) return give_up({Code::kCancelled, "another process of the workload failed"});
  if (first_since_something_moved) watchdog_ = Deadline::in(kSilence);
  if (is_impatient() && watchdog_.passed()) give_up({Code::kTimedOut, "the other side of the workload fell silent"});
}

void Side::give_up(Error error) {
  if (trouble_.ok()) trouble_ = std::move(error);
}

// --- the leader ------------------------------------------------------------------------------------------------------

/// Counts completions down.
class Leader::Count final : public nnti::Completion {
 public:
  Count(Leader &leader, int expected) : leader_(leader), left_(expected) {}
  void on_complete(Status status) override {
    --left_;
    if (!status.ok()) leader_.give_up(status.error());
  }
  int left() const { return left_; }

 private:
  Leader &leader_;
  int left_;
};

Status Leader::connect(const std::string &url, Invitation invitation) {
  if (url.empty()) return Error{Code::kPeerLost, "the other side of the workload did not start"};
  invited_ = invitation == Invitation::kNone;
  auto peer = endpoint().connect(url, Deadline::in(kSilence));  // the invitation may come meanwhile
  if (!peer) return peer.error();
  follower_ = *peer;
  while (!invited_ && trouble().ok()) turn();
  return trouble();
}

void Leader::on_message(nnti::PeerId, std::span<const std::byte> message) {
  if (invited_) {
    ++answers_;
  } else if (message.size() == sizeof lent_) {
    std::memcpy(&lent_, message.data(), sizeof lent_);
    invited_ = true;
  }
}

void Leader::on_peer_lost(nnti::PeerId, const Error &error) { give_up(error); }

void Leader::send(std::span<const std::byte> message) {
  for (;;) {
    auto status = endpoint().send(follower_, message);
    if (status.ok()) return;
    if (status.code() != Code::kBusy) return give_up(status.error());
    turn();
    if (!trouble().ok()) return;
  }
}

void Leader::exchange(std::span<const std::byte> message, int messages, int answers) {
  auto awaited = answers_ + static_cast<std::uint64_t>(answers);
  for (int i = 0; i < messages; ++i) send(message);
  while (answers_ < awaited && trouble().ok()) turn();
}

void Leader::wait_for(const Count &completions) {
  // What was lent to the operations stays lent until they end: trouble ends the connection, and with it the operations.
  while (completions.left() > 0) {
    turn();
    if (!trouble().ok()) endpoint().disconnect(follower_);
  }
}

void Leader::get(const nnti::RemoteBuffer &remote, std::span<std::byte> local) {
  Count completion(*this, 1);
  endpoint().get(follower_, remote, 0, local, completion);
  wait_for(completion);
}

void Leader::put(const nnti::RemoteBuffer &remote, std::span<const std::byte> local) {
  Count completion(*this, 1);
  endpoint().put(follower_, remote, 0, local, completion);
  wait_for(completion);
}

void Leader::put_both_ways(const nnti::RemoteBuffer &remote, std::span<const std::byte> local,
                           const nnti::RemoteBuffer &ours) {
  PutOrder order{ours, local.size()};
  auto awaited = answers_ + 1;
  send(std::as_bytes(std::span(&order, 1)));
  put(remote, local);
  while (answers_ < awaited && trouble().ok()) turn();
}

// --- the team --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Board>> run_team(const Options &options, const Team &team, const Lead &lead) {
  return run_crew(team.leaders + team.followers, housing_for(options.transport), kTeamLimit,
                  [&](Board &board, int member) -> Status {
                    Pin pin(core_of(team, member));
                    if (member < team.leaders) return lead_once(options, team, board, member, lead);
                    Follower follower(team);
                    auto status = follower.open(options, team, board, true);
                    if (status.ok()) status = follower.serve(board, member);
                    return status;
                  });
}

}  // namespace bench
