// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/endpoint/waiter.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "nnti/conformance/tools_testing.hpp"

namespace nnti {
namespace {

using namespace std::chrono_literals;

/// To which nothing ever comes. Counts how often it is asked.
class SilentTransport final : public Transport {
 public:
  std::string_view name() const override { return "silent"; }
  std::string url() const override { return {}; }
  Status can_reach(const nessie::Url &) const override { return {}; }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &, Deadline) override { return nobody_; }
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &) override { return nobody_; }
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &) const override { return {}; }
  std::size_t progress() override { return 0; }
  bool ready() override {
    ++asked_;
    return false;
  }
  int wait_fd() const override { return kInPoller; }
  bool arm() override { return true; }
  void disarm(bool) override {}
  int asked() const { return asked_; }

 private:
  const Error nobody_{Code::kUnsupported, "nobody is there"};
  int asked_ = 0;
};

/// The calling thread, to the first of its cores.
class BoundToOneCore {
 public:
  BoundToOneCore() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~BoundToOneCore() { ::sched_setaffinity(0, sizeof before_, &before_); }
  BoundToOneCore(const BoundToOneCore &) = delete;

 private:
  cpu_set_t before_;
};

/// How often a transport is asked in a wait that polls for two milliseconds before it blocks.
int times_asked_in_a_wait() {
  Poller poller;
  Waiter waiter(poller);
  waiter.configure(2ms);
  std::unique_ptr<Transport> transports[] = {std::make_unique<SilentTransport>()};
  waiter.add(*transports[0]);
  waiter.wait(transports, Deadline::in(4ms), Waking::kAtOnce);
  return static_cast<const SilentTransport &>(*transports[0]).asked();
}

TEST(Waiter, ThreadThatIsBoundToACore_Polls) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "on one core nobody polls";
  const BoundToOneCore bound;
  int most = 0;  // not while others want the core
  for (const auto end = Deadline::in(kWatchdog); most < 100 && !end.passed();)
    most = std::max(most, times_asked_in_a_wait());
  EXPECT_GE(most, 100);
}

}  // namespace
}  // namespace nnti
