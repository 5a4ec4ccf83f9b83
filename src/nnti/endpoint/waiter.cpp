// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/endpoint/waiter.hpp"

#include <base/thread.hpp>

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace nnti {
namespace {

using Clock = nessie::Clock;

constexpr int kYields = 4;
constexpr auto kLateYield = std::chrono::microseconds(20);
// How many times as long as others had the core it is left to them afterwards, by blocking at once.
constexpr int kFirstCaution = 16, kMostCaution = 512;
constexpr auto kLongestCaution = std::chrono::seconds(1);
constexpr int kPollsPerClockReading = 32;
constexpr auto kSpinBetweenLooks = std::chrono::milliseconds(1);
constexpr auto kSpinBeforeYield = std::chrono::microseconds(2);
// How often transports without a descriptor are asked.
constexpr auto kShortestInterval = std::chrono::microseconds(50), kLongestInterval = std::chrono::microseconds(20'000);
constexpr int kIntervalsPerSleep = 16;
// Who sleeps again so soon stays as it was for that: each change costs half of what the sleep itself does.
constexpr auto kOften = std::chrono::milliseconds(1);

bool has_no_descriptor(const std::unique_ptr<Transport> &transport) { return transport->wait_fd() == -1; }

/// Of the calling thread; others of this machine may have others.
int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 2;
}

}  // namespace

Waiter::Waiter(Poller &poller)
    : poller_(poller), caution_(kFirstCaution), wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  poller_.watch(wake_fd_.get(), woken_up_, Poller::Trigger::kEdge);
}

void Waiter::configure(std::chrono::microseconds spin) {
  // On one core nobody else can make progress while we spin.
  spin_ = ::sysconf(_SC_NPROCESSORS_ONLN) > 1 ? spin : std::chrono::microseconds(0);
  is_bound_ = usable_cores() == 1;
}

bool Waiter::something_is_ready(Transports transports) {
  if (woken_.load(std::memory_order_relaxed)) return true;
  for (const auto &transport : transports)
    if (transport->ready()) return true;
  return false;
}

bool Waiter::spin(Transports transports, Deadline deadline) {
  const auto begin = Clock::now(), end = std::min(deadline.when(), begin + spin_);
  // What has no descriptor may take long to ask: MPI yields to others on a full node.
  const bool slow = std::ranges::any_of(transports, has_no_descriptor);
  const int polls = slow ? 1 : kPollsPerClockReading;
  for (auto look_at = begin + kSpinBetweenLooks;;) {
    for (int i = 0; i < polls; ++i) {
      if (something_is_ready(transports)) return true;
      nessie::relax();
    }
    const auto now = Clock::now();
    if (now >= end) return false;
    if (now < look_at) continue;
    block(transports, Deadline::now(), Waking::kAtOnce);  // ready() says nothing of what comes by descriptors
    look_at = now + kSpinBetweenLooks;
  }
}

/// Leaves the core to others for once. True: for long.
bool Waiter::leave_core(long departures_before) {
  const auto before = Clock::now();
  ::sched_yield();
  const auto now = Clock::now();
  // Interrupts take their time, too: what counts is that somebody else had the core.
  const bool was_long = now - before > kLateYield && nessie::departures() > departures_before;
  if (was_long) {
    crowded_until_ = now + std::min<Clock::duration>((now - before) * caution_, kLongestCaution);
    caution_ = std::min(2 * caution_, kMostCaution);
  }
  return was_long;
}

bool Waiter::yield(Transports transports) {
  const long departures_before = nessie::departures();
  for (int i = 0; i < kYields; ++i) {
    const bool was_long = leave_core(departures_before);
    if (something_is_ready(transports)) return true;
    if (was_long) return false;
  }
  caution_ = kFirstCaution;
  return false;
}

void Waiter::add(const Transport &transport) {
  if (transport.wait_fd() < 0) return;
  watched_.push_back(std::make_unique<Watched>());
  watched_.back()->transport = &transport;
  poller_.watch(transport.wait_fd(), *watched_.back());
}

bool Waiter::take_ready(const Transport &transport) {
  for (const auto &watched : watched_)
    if (watched->transport == &transport) return std::exchange(watched->ready, false);
  return false;
}

/// False: there is something to do already. `deadline` becomes earlier if a transport has a timer.
bool Waiter::arm_all(Transports transports, Deadline &deadline) {
  blocked_.store(true, std::memory_order_seq_cst);
  bool idle = !woken_.load(std::memory_order_seq_cst);
  for (armed_ = 0; idle && armed_ < transports.size(); armed_ += idle ? 1 : 0) {
    auto &transport = *transports[armed_];
    idle = transport.arm();
    deadline = deadline.earlier(transport.timer());
  }
  return idle;
}

void Waiter::disarm_all(Transports transports) {
  for (const auto &transport : transports.first(std::exchange(armed_, 0))) transport->disarm(take_ready(*transport));
  blocked_.store(false, std::memory_order_relaxed);
}

/// Until a descriptor is ready, or a transport that has none is: it is asked, ever more rarely.
void Waiter::sleep(Transports armed, Deadline deadline) {
  if (std::ranges::none_of(armed, has_no_descriptor)) {
    poller_.dispatch(deadline);
    return;
  }
  for (const auto begin = Clock::now();;) {
    const auto interval =
        std::clamp<Clock::duration>((Clock::now() - begin) / kIntervalsPerSleep, kShortestInterval, kLongestInterval);
    if (poller_.dispatch(deadline.earlier(Deadline::in(interval))) != 0 || deadline.passed()) return;
    for (const auto &transport : armed)
      if (has_no_descriptor(transport) && transport->ready()) return;
  }
}

void Waiter::block(Transports transports, Deadline deadline, Waking waking) {
  const bool in_turn = waking == Waking::kInTurn && crowded_until_;
  const bool sleeps_often = in_turn && Clock::now() - woken_at_ < kOften;
  nessie::be_woken_in_turn(in_turn);
  if (arm_all(transports, deadline)) sleep(transports, deadline);
  disarm_all(transports);
  if (!in_turn) return;
  if (!sleeps_often) nessie::be_woken_in_turn(false);  // perhaps it sleeps elsewhere next
  woken_at_ = Clock::now();
}

/// False: there is nothing yet.
bool Waiter::poll(Transports transports, Deadline deadline) {
  if (crowded_until_ && Clock::now() >= *crowded_until_) crowded_until_.reset();
  if (crowded_until_) return false;
  nessie::be_woken_in_turn(false);
  bool may_spin = spin_.count() > 0;
  if (may_spin && is_bound_) {  // perhaps to the core of the one whom it waits for
    if (!is_shared_ && spin(transports, deadline.earlier(Deadline::in(kSpinBeforeYield)))) return true;
    const long departures_before = nessie::departures();
    if (leave_core(departures_before)) return something_is_ready(transports);
    is_shared_ = nessie::departures() > departures_before;
    may_spin = !is_shared_;
    if (may_spin) caution_ = kFirstCaution;
  }
  if (may_spin && spin(transports, deadline)) return true;
  return something_is_ready(transports) || deadline.passed() || yield(transports);
}

void Waiter::wait(Transports transports, Deadline deadline, Waking waking) {
  if (!something_is_ready(transports) && !deadline.passed() && !poll(transports, deadline))
    block(transports, deadline, waking);
  woken_.exchange(false, std::memory_order_acq_rel);
}

void Waiter::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (!blocked_.exchange(false, std::memory_order_seq_cst)) return;
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

// --- for event loops of others ----------------------------------------------------------------------------------------

Result<int> Waiter::descriptor() {
  if (timer_fd_.valid()) return poller_.fd();
  nessie::Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer.valid()) return Error{Code::kIo, "the system has no descriptors left", nessie::Scope::kOperation, errno};
  timer_fd_ = std::move(timer);
  poller_.watch(timer_fd_.get(), woken_up_, Poller::Trigger::kEdge);
  return poller_.fd();
}

bool Waiter::arm(Transports transports) {
  auto deadline = Deadline::never();
  const bool idle = !something_is_ready(transports) && arm_all(transports, deadline);
  if (std::ranges::any_of(transports, has_no_descriptor))
    deadline = deadline.earlier(Deadline::in(std::chrono::milliseconds(1)));
  itimerspec when{};
  if (const int left = deadline.poll_timeout_ms(); idle && left >= 0) {
    when.it_value.tv_sec = left / 1000;
    when.it_value.tv_nsec = std::max(left % 1000 * 1'000'000, 1);
  }
  if (timer_fd_.valid()) ::timerfd_settime(timer_fd_.get(), 0, &when, nullptr);
  if (!idle) disarm(transports);
  return idle;
}

void Waiter::disarm(Transports transports) {
  poller_.dispatch(Deadline::now());
  disarm_all(transports);
  woken_.store(false, std::memory_order_relaxed);
}

}  // namespace nnti
