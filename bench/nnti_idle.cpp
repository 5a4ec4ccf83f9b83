// SPDX-License-Identifier: BSD-3-Clause
// nnti-idle: what it costs to wait. CPU time of a process that is blocked in Endpoint::wait(), with 1 and with 100
// peers that say nothing; and how long it takes to wake it up, beside a bare eventfd and a futex.
#include "many_peers.hpp"
#include "options.hpp"
#include "repeat.hpp"
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
const std::vector<int> kPeers{1, 100};

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

Series cpu(const char *system, const std::string &transport, int peers) {
  return {system, transport, "waiting", 0, peers, "cpu_us_per_s", "us/s"};
}
Series wake_up(const char *system, const std::string &transport, int peers) {
  return {system, transport, "blocking", kMessageBytes, peers, "half_round_trip_us", "us"};
}

constexpr std::size_t kCpu = 0, kWakeUp = 1;

Status hold(Holder &holder, Board &board, Lane &lane, int peers) {
  holder.wait_for_peers(peers);
  if (!board.meet(2, 1)) return holder.trouble();
  lane.values[kCpu] = idle_us_per_s([&](Deadline until) {
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
  lane.values[kWakeUp] = paced_us(kPacedCalls, [&](bool) { guest.exchange(message, 1, 1); });
  board.meet(2, 3);
  return guest.trouble();
}

Status measure_ours(const Options &options, int peers, int repetition, Report &report) {
  Board board(2);
  auto status =
      run_holder_and_guests(options, kBlocking, board,
                            {[&](Holder &holder, Board &all, Lane &lane) { return hold(holder, all, lane, peers); },
                             [&](Guests &guests, Board &all, Lane &lane) { return visit(guests, all, lane, peers); }});
  if (!status.ok()) return status;
  report.add(cpu("nessie", options.transport, peers), repetition, board.lane(kHolder).values[kCpu]);
  report.add(wake_up("nessie", options.transport, peers), repetition, board.lane(kGuests).values[kWakeUp] / 2);
  return {};
}

Status measure_kernel(int repetition, Report &report) {
  report.add(cpu("eventfd", "kernel", 1), repetition, idle_poll_us_per_s());
  auto by_eventfd = wake_up_round_trip(WakeUp::kEventfd), by_futex = wake_up_round_trip(WakeUp::kFutex);
  if (!by_eventfd || !by_futex) return by_eventfd ? by_futex.error() : by_eventfd.error();
  report.add(wake_up("eventfd", "kernel", 1), repetition, *by_eventfd / 2);
  report.add(wake_up("futex", "kernel", 1), repetition, *by_futex / 2);
  return {};
}

}  // namespace

Status nnti_idle(const Options &options, Report &report) {
  auto once = [&](int repetition) {
    for (int peers : kPeers)
      if (auto status = measure_ours(options, peers, repetition, report); !status.ok()) return status;
    return measure_kernel(repetition, report);
  };
  auto status = repeat_on_fit_cores(options.repetitions(9, 5), report, "idle peers, and waking up", once);
  if (!status.ok()) return status;
  for (int peers : kPeers) {
    for (const char *system : {"eventfd", "futex"})
      report.add_ratio(wake_up("nessie", options.transport, peers), wake_up(system, "kernel", 1));
    report.add_ratio(cpu("nessie", options.transport, peers), cpu("eventfd", "kernel", 1));
  }
  return {};
}

}  // namespace bench
