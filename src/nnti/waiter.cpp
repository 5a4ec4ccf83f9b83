// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/waiter.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace nnti {
namespace {

using Clock = nessie::Clock;

constexpr int kYields = 4;
constexpr auto kLateYield = std::chrono::microseconds(20);
constexpr int kFirstBlockedWaits = 256, kMostBlockedWaits = 8192;
constexpr int kPollsPerClockReading = 32;
constexpr std::size_t kMaxDescriptors = 16;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 2;
}

}  // namespace

Waiter::Waiter() : blocked_waits_(kFirstBlockedWaits), wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Waiter::configure(std::chrono::microseconds spin) {
  // On one core nobody else can make progress while we spin.
  spin_ = usable_cores() > 1 ? spin : std::chrono::microseconds(0);
}

bool Waiter::something_is_ready(Transports transports) {
  if (woken_.load(std::memory_order_relaxed)) return true;
  for (const auto &transport : transports)
    if (transport->ready()) return true;
  return false;
}

bool Waiter::spin(Transports transports, Deadline deadline) {
  auto end = deadline.earlier(Deadline::in(spin_)).when();
  do {
    for (int i = 0; i < kPollsPerClockReading; ++i) {
      if (something_is_ready(transports)) return true;
      relax();
    }
  } while (Clock::now() < end);
  return false;
}

bool Waiter::yield(Transports transports) {
  for (int i = 0; i < kYields; ++i) {
    auto before = Clock::now();
    ::sched_yield();
    bool late = Clock::now() - before > kLateYield;
    if (late) blocked_waits_left_ = std::exchange(blocked_waits_, std::min(2 * blocked_waits_, kMostBlockedWaits));
    if (something_is_ready(transports)) return true;
    if (late) return false;
  }
  blocked_waits_ = kFirstBlockedWaits;
  return false;
}

void Waiter::block(Transports transports, Deadline deadline) {
  std::array<pollfd, kMaxDescriptors> descriptors;
  std::array<Transport *, kMaxDescriptors> armed;
  descriptors[0] = {wake_fd_.get(), POLLIN, 0};
  nfds_t count = 1;
  blocked_.store(true, std::memory_order_seq_cst);
  bool idle = !woken_.load(std::memory_order_seq_cst);
  for (const auto &transport : transports) {
    if (!idle || count == kMaxDescriptors) break;
    idle = transport->arm();
    if (!idle) break;
    armed[count] = transport.get();
    descriptors[count++] = {transport->wait_fd(), POLLIN, 0};  // -1 is ignored by poll()
    deadline = deadline.earlier(transport->timer());
    if (transport->wait_fd() < 0) deadline = deadline.earlier(Deadline::in(std::chrono::milliseconds(1)));
  }
  int ready = idle ? ::poll(descriptors.data(), count, deadline.poll_timeout_ms()) : 0;
  for (nfds_t i = 1; i < count; ++i) armed[i]->disarm(ready > 0 && descriptors[i].revents != 0);
  blocked_.store(false, std::memory_order_relaxed);
  if (ready > 0 && descriptors[0].revents != 0) {
    std::uint64_t wakes;
    [[maybe_unused]] auto drained = ::read(wake_fd_.get(), &wakes, sizeof wakes);
  }
}

void Waiter::wait(Transports transports, Deadline deadline) {
  if (!something_is_ready(transports) && !deadline.passed()) {
    bool crowded = blocked_waits_left_ > 0;
    if (crowded) --blocked_waits_left_;
    bool found =
        !crowded && ((spin_.count() > 0 && spin(transports, deadline)) || deadline.passed() || yield(transports));
    if (!found) block(transports, deadline);
  }
  woken_.exchange(false, std::memory_order_acq_rel);
}

void Waiter::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (!blocked_.exchange(false, std::memory_order_seq_cst)) return;
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

}  // namespace nnti
