// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/held_rings.hpp"

#include "base/fd.hpp"
#include "nnti/conformance/tools_testing.hpp"
#include "nnti/transports/shm/table.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <thread>

namespace nnti::shm {
namespace {

struct ShmHeldRings : testing::Test {
  ShmHeldRings() : doorbell(::eventfd(0, EFD_NONBLOCK)) {}
  bool hold() { return HeldRings::hold(held, pusher, doorbell.get()); }
  bool is_rung(std::chrono::milliseconds within = {}) {
    pollfd readable{doorbell.get(), POLLIN, 0};
    std::uint64_t count = 0;
    return ::poll(&readable, 1, static_cast<int>(within.count())) == 1 &&
           ::read(doorbell.get(), &count, sizeof count) == sizeof count;
  }
  nessie::Fd doorbell;
  Pusher pusher;
  std::shared_ptr<HeldRings> held = std::make_shared<HeldRings>();
};

TEST_F(ShmHeldRings, AreRungByWhoHoldsThem) {
  ASSERT_TRUE(hold());
  EXPECT_TRUE(held->any());
  held->release();
  EXPECT_TRUE(is_rung());
  EXPECT_FALSE(held->any());
}

TEST_F(ShmHeldRings, AreRungByThePusherIfTheirHolderDoesNotComeBack) {
  ASSERT_TRUE(hold());
  EXPECT_TRUE(is_rung(kWatchdog));
}

TEST_F(ShmHeldRings, AreRungBeforeTheirDoorbellIsClosed) {
  ASSERT_TRUE(hold());
  held->forget(doorbell.get());
  EXPECT_TRUE(is_rung());
  held->release();
  EXPECT_FALSE(is_rung());
}

TEST_F(ShmHeldRings, AreNotHeldForATimeByWhoCameBackLate) {
  for (int i = 0; i < 100; ++i) {  // a late return does not count if the kernel had the core
    ASSERT_TRUE(hold());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    held->release();
    if (!hold()) break;
    held->release();
    ASSERT_LT(i, 99);
  }
  int refused = 1;
  while (!hold()) ++refused;
  EXPECT_GE(refused, static_cast<int>(Doubts::kFew));
}

/// All of this process on one core, as launchers bind ranks.
class OnOneCore {
 public:
  OnOneCore() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore &) = delete;

 private:
  cpu_set_t before_{};
};

/// The pusher, on the same core, takes it from the holder for a moment each time: that is no excuse. What other
/// processes take is one.
TEST_F(ShmHeldRings, AreNotHeldForATimeByWhoComputes_NorWhereAllHaveOneCore) {
  const OnOneCore bound;
  const auto compute = [] {
    for (const auto end = nessie::Clock::now() + std::chrono::milliseconds(5); nessie::Clock::now() < end;) {}
  };
  const auto watchdog = nessie::Deadline::in(kWatchdog);
  int refused = 0;
  while (refused < 20 && !watchdog.passed()) {
    if (!hold()) {
      ++refused;
      continue;
    }
    compute();
    held->release();
  }
  EXPECT_EQ(refused, 20);
}

TEST_F(ShmHeldRings, AreHeldAgainByWhoComesBackInTime) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(hold());
    held->release();
    EXPECT_TRUE(is_rung());
  }
}

TEST(ShmTable, WhoSleepsOften_AsksItsSendersToFence) {
  auto table = OwnTable::make();
  ASSERT_TRUE(table.ok());
  const auto sleeps = [&](bool has_peers = true) {
    table->sleep(has_peers);
    const auto epoch = table->table().sleep_epoch.load();
    EXPECT_EQ(epoch & 1, 1u);
    table->awake();
    EXPECT_EQ(table->table().sleep_epoch.load() & 1, 0u);
    return (epoch & kSleepsOften) != 0;
  };
  EXPECT_FALSE(sleeps());
  bool asked = false;
  for (int i = 0; i < 1000 && !asked; ++i) asked = sleeps();
  EXPECT_TRUE(asked);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(sleeps(false)) << "nobody has passed a fence";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(sleeps());
}

}  // namespace
}  // namespace nnti::shm
