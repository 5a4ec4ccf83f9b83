// SPDX-License-Identifier: BSD-3-Clause
// nnti-idle: what it costs to wait. CPU time of a process that is blocked in Endpoint::wait(), with 1 and with 100
// peers that say nothing; and how long it takes to wake it up, beside a bare eventfd and a futex.
#include "comparison.hpp"
#include "many_peers.hpp"
#include "sockets.hpp"
#include "timing.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ctime>

namespace bench {
namespace {

using nessie::Deadline;
using nessie::Status;

constexpr std::uint64_t kMessageBytes = 8;
constexpr auto kIdle = std::chrono::seconds(1);
constexpr int kPeers[] = {1, 100};
constexpr const char *kWaiting = "waiting";

double cpu_us() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
}

/// CPU time per second of `wait(until)`, called until a second is over.
template <class Wait> double idle_us_per_s(Wait &&wait) {
  auto began = now_s(), used = cpu_us();
  for (auto until = Deadline::in(kIdle); !until.passed();) wait(until);
  return (cpu_us() - used) / (now_s() - began);
}

double idle_poll_us_per_s() {
  pollfd bell{eventfd(0, EFD_CLOEXEC), POLLIN, 0};
  double us = idle_us_per_s([&](Deadline until) { poll(&bell, 1, until.poll_timeout_ms()); });
  close(bell.fd);
  return us;
}

Status hold(Holder &holder, Board &board, Lane &lane, int peers) {
  holder.wait_for_peers(peers);
  if (!board.meet(2, 1)) return holder.trouble();
  lane.us = idle_us_per_s([&](Deadline until) {
    holder.endpoint().progress();
    holder.endpoint().wait(until);
  });
  if (!board.meet(2, 2)) return holder.trouble();
  holder.answer(kPacedCalls);
  board.meet(2, 3);
  return holder.trouble();
}

Status visit(Guests &guests, Board &board, Lane &lane, int peers) {
  if (auto status = guests.connect(peers); !status.ok()) return status;
  if (!board.meet(2, 1) || !board.meet(2, 2))
    return nessie::Error{nessie::Code::kTimedOut, "the other process of the workload did not come"};
  std::vector<std::byte> message(kMessageBytes, std::byte{1});
  auto &guest = guests[0];
  lane.us = paced_us(kPacedCalls, [&](bool) { guest.exchange(message, 1, 1); });
  board.meet(2, 3);
  return guest.trouble();
}

class Idle final : public Comparison {
 public:
  Idle(const Options &options, Report &report) : Comparison(options, report, {"half_round_trip_us", "us"}) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Metric metric_of(const std::string &mode) const override {
    return mode == kWaiting ? Metric{"cpu_us_per_s", "us/s"} : Comparison::metric_of(mode);
  }
  Status measure_ours(int peers);
};

Status Idle::measure_ours(int peers) {
  auto board =
      run_holder_and_guests(options_, kBlocking,
                            {[&](Holder &holder, Board &all, Lane &lane) { return hold(holder, all, lane, peers); },
                             [&](Guests &guests, Board &all, Lane &lane) { return visit(guests, all, lane, peers); }});
  if (!board) return board.error();
  add(ours(kWaiting, 0, peers), (*board)->lane(kHolder).us);
  add(ours(kBlocking.mode, kMessageBytes, peers), (*board)->lane(kGuests).us / 2);
  return {};
}

Status Idle::measure() {
  for (int peers : kPeers)
    if (auto status = measure_ours(peers); !status.ok()) return status;
  add(series("eventfd", "kernel", kWaiting, 0), idle_poll_us_per_s());
  auto by_eventfd = wake_up_round_trip(WakeUp::kEventfd), by_futex = wake_up_round_trip(WakeUp::kFutex);
  if (!by_eventfd || !by_futex) return by_eventfd ? by_futex.error() : by_eventfd.error();
  add(series("eventfd", "kernel", kBlocking.mode, kMessageBytes), *by_eventfd / 2);
  add(series("futex", "kernel", kBlocking.mode, kMessageBytes), *by_futex / 2);
  return {};
}

void Idle::add_ratios() {
  for (int peers : kPeers) {
    for (const char *system : {"eventfd", "futex"})
      compare(ours(kBlocking.mode, kMessageBytes, peers), series(system, "kernel", kBlocking.mode, kMessageBytes));
    compare(ours(kWaiting, 0, peers), series("eventfd", "kernel", kWaiting, 0));
  }
}

}  // namespace

Status nnti_idle(const Options &options, Report &report) {
  return Idle(options, report).run_on_fit_cores(options.repetitions(9, 5), "idle peers, and waking up");
}

}  // namespace bench
