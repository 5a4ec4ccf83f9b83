// SPDX-License-Identifier: BSD-3-Clause
#include <service/host.hpp>

#include <nssi/testing/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

namespace nessie::service {
namespace {

using nssi::testing::eventually;
using nssi::testing::open_runtime;
using nssi::testing::options_for;

/// What happened, in order.
class Diary {
 public:
  void note(const std::string &what) {
    const std::lock_guard lock(mutex_);
    all_ += all_.empty() ? what : " " + what;
  }
  std::string all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::string all_;
};

/// Notes what it is told.
class Noting final : public Provider {
 public:
  Noting(const ProviderContext &context, Diary &diary) : name_(context.name), diary_(diary) {
    diary_.note("start-" + name_);
  }
  ~Noting() override { diary_.note("gone-" + name_); }
  void peer_lost(nssi::PeerId) override { ++lost; }
  void quiesce() override {
    diary_.note("quiesce-" + name_);
    if (on_quiesce) on_quiesce();
  }
  bool holds_data() const override { return holds; }
  void stop() override { diary_.note("stop-" + name_); }
  int exit_code() const override { return code; }

  std::function<void()> on_quiesce;
  std::atomic<bool> holds{false};
  std::atomic<int> lost{0};
  int code = 0;

 private:
  const std::string name_;
  Diary &diary_;
};

class HostTest : public ::testing::Test {
 protected:
  void SetUp() override { host_ = *Host::open({.runtime = options_for("inproc", true)}); }
  void TearDown() override {
    if (thread_.joinable()) {
      host_->end();
      thread_.join();
    }
  }
  Noting &add(const std::string &name) {
    auto started =
        host_->start({.name = name}, [&](const ProviderContext &context) -> Result<std::unique_ptr<Provider>> {
          return std::unique_ptr<Provider>(std::make_unique<Noting>(context, diary_));
        });
    EXPECT_TRUE(started.ok());
    return static_cast<Noting &>(**started);
  }
  void run() {
    thread_ = std::thread([this] { host_->run(); });
  }
  Diary diary_;
  std::unique_ptr<Host> host_;
  std::thread thread_;
};

TEST_F(HostTest, End_QuiescesAll_AndStopsThemInReverse) {
  add("a");
  add("b");
  run();
  host_->end();
  thread_.join();
  EXPECT_EQ(host_->finish(), 0);
  EXPECT_EQ(diary_.all(), "start-a start-b quiesce-a quiesce-b stop-b stop-a gone-b gone-a");
}

TEST_F(HostTest, AProviderThatFailsToStart_LeavesThoseBeforeIt) {
  add("a");
  const auto failed = host_->start({.name = "b"}, [](const ProviderContext &) -> Result<std::unique_ptr<Provider>> {
    return Error{Code::kNoMemory, "there is none"};
  });
  EXPECT_EQ(failed.code(), Code::kNoMemory);
  host_.reset();
  EXPECT_EQ(diary_.all(), "start-a stop-a gone-a");
}

TEST_F(HostTest, AProviderThatEndsTheProcessAsItStarts_IsNotAskedToQuiesceBeforeItIsThere) {
  add("a");
  const auto ends = host_->start({.name = "b"}, [&](const ProviderContext &context) {
    context.end_process();
    EXPECT_TRUE(eventually([&] {
      context.runtime.sleep_until(Deadline::in(std::chrono::milliseconds(1)));  // drives
      return diary_.all() == "start-a quiesce-a";
    }));
    return Result<std::unique_ptr<Provider>>(std::make_unique<Noting>(context, diary_));
  });
  EXPECT_TRUE(ends.ok());
  host_->run();
  EXPECT_EQ(host_->finish(), 0);
  EXPECT_EQ(diary_.all(), "start-a quiesce-a start-b stop-b stop-a gone-b gone-a");
}

TEST_F(HostTest, FirstExitCodeThatIsNotZero_IsTheProcesss) {
  add("a").code = 3;
  add("b");
  EXPECT_EQ(host_->finish(), 3);
}

TEST_F(HostTest, OneThatTakesLong_IsWaitedFor_AndHoldsUpNoOther) {
  auto &slow = add("slow");
  add("quick");
  std::atomic<bool> may_go_on{false};
  slow.on_quiesce = [&] {
    while (!may_go_on) host_->runtime().sleep_until(Deadline::in(std::chrono::milliseconds(1)));
    diary_.note("done-slow");
  };
  run();
  host_->end();
  EXPECT_TRUE(eventually([&] { return diary_.all().find("quiesce-quick") != std::string::npos; }));
  EXPECT_EQ(diary_.all().find("done"), std::string::npos);
  may_go_on = true;
  thread_.join();
  EXPECT_NE(diary_.all().find("done-slow"), std::string::npos);
}

TEST_F(HostTest, AskedTwice_EndsAtOnce_UnlessDataWouldBeLost) {
  auto &slow = add("slow");
  std::atomic<bool> may_go_on{false};
  slow.on_quiesce = [&] {
    while (!may_go_on) host_->runtime().sleep_until(Deadline::in(std::chrono::milliseconds(1)));
    slow.holds = false;
  };
  slow.holds = true;
  run();
  host_->end();
  EXPECT_TRUE(eventually([&] { return diary_.all().find("quiesce") != std::string::npos; }));
  host_->end();
  auto visitor = open_runtime(options_for("inproc", false));
  const auto peer = visitor->connect(host_->runtime().url(), Deadline::in(std::chrono::seconds(20)));
  EXPECT_TRUE(peer.ok()) << "it has ended, with data that were not safe";
  slow.holds = false;
  host_->end();
  thread_.join();
  may_go_on = true;
  host_.reset();  // and with it the fiber that looks at what is local here
}

TEST_F(HostTest, AskedTwiceBeforeItRuns_NobodyQuiescesWhoWasStopped) {
  add("a");
  host_->end();
  host_->end();
  run();
  thread_.join();
  EXPECT_EQ(host_->finish(), 0);
  EXPECT_EQ(diary_.all().substr(diary_.all().find("stop-a")), "stop-a gone-a");
}

TEST_F(HostTest, DataThatComeWhileItQuiesces_AreFinishedToo) {
  auto &provider = add("a");
  int rounds = 0;
  provider.on_quiesce = [&] { provider.holds = ++rounds < 3; };
  run();
  host_->end();
  thread_.join();
  EXPECT_EQ(rounds, 3);
}

TEST_F(HostTest, APeerThatIsLost_IsToldToEveryProvider) {
  auto &a = add("a"), &b = add("b");
  run();
  auto visitor = open_runtime(options_for("inproc", false));
  ASSERT_TRUE(visitor->connect(host_->runtime().url(), Deadline::in(std::chrono::seconds(20))).ok());
  visitor.reset();
  EXPECT_TRUE(eventually([&] { return a.lost == 1 && b.lost == 1; }));
}

TEST_F(HostTest, AProvidersSettings_AreItsOwn) {
  std::vector<std::string> seen;
  for (const auto *value : {"1", "2"})
    (void)host_->start({.name = value, .settings = {{"counter.start", value, "a test"}}},
                       [&](const ProviderContext &context) -> Result<std::unique_ptr<Provider>> {
                         seen.push_back(context.config.get_or("counter.start", "none"));
                         return Error{Code::kUnsupported, "enough was seen"};
                       });
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "2"}));
}

TEST_F(HostTest, WorkForTheMainThread_IsDoneByWhoRuns) {
  std::thread::id worked;
  nessie::service::Worker *main_thread = nullptr;
  (void)host_->start({.name = "a"}, [&](const ProviderContext &context) -> Result<std::unique_ptr<Provider>> {
    main_thread = &context.main_thread;
    return Error{Code::kUnsupported, "enough was seen"};
  });
  ASSERT_NE(main_thread, nullptr);
  run();
  std::atomic<bool> done{false};
  host_->runtime().spawn([&] {
    worked = main_thread->carry_out(host_->runtime(), [] { return std::this_thread::get_id(); });
    done = true;
  });
  EXPECT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(worked, thread_.get_id());
}

}  // namespace
}  // namespace nessie::service
