// SPDX-License-Identifier: BSD-3-Clause
// A run, agents and programs, on threads of one process.
#include <services/launch/client/client.hpp>
#include <services/launch/server/server.hpp>

#include <base/clock.hpp>
#include <nssi/testing/testing.hpp>
#include <service/host.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace launch {
namespace {

using nessie::Code;
using nessie::Deadline;
using nssi::testing::eventually;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Agent = LAUNCH::ONE::Client;

Deadline soon() { return Deadline::in(seconds(60)); }

/// A process of its own, as far as NSSI is concerned.
struct Peer {
  explicit Peer(const std::string &url) : runtime(nssi::testing::open_runtime(options())) {
    client = std::make_unique<Agent>(*runtime, *runtime->connect(url, soon()));
  }
  static nssi::RuntimeOptions options() {
    auto options = nssi::testing::options_for("shm", false);
    options.endpoint.config.set("nssi.reconnect", "100ms");
    return options;
  }
  nssi::Future<void> join(unsigned index, const std::string &at) {
    return client->JOIN_async({index, at, "node" + std::to_string(index), 42}, {.deadline = Deadline::never()});
  }
  std::unique_ptr<nssi::Runtime> runtime;
  std::unique_ptr<Agent> client;
};

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = nssi::testing::options_for("shm", true);
    options.endpoint.config.set("nssi.reconnect", "100ms");
    host_ = *nessie::service::Host::open({.runtime = std::move(options)});
    const auto start =
        [this](const nessie::ProviderContext &context) -> nessie::Result<std::unique_ptr<nessie::Provider>> {
      auto server = Server::start(context, 2, [this] { ++changes; });
      if (!server.ok()) return server.error();
      run = server->get();
      return std::unique_ptr<nessie::Provider>(*std::move(server));
    };
    ASSERT_TRUE(host_->start({.name = "launch"}, start).ok());
    thread_ = std::thread([this] { host_->run(); });
  }
  void TearDown() override {
    host_->end();
    thread_.join();
    host_->finish();
  }
  const std::string &url() { return host_->runtime().url(); }
  bool has_joined(unsigned index) {
    return eventually([&] { return !run->states()[index].url.empty(); });
  }
  nessie::Result<std::vector<std::string>> ask(Deadline deadline = soon()) {
    const auto runtime = nssi::testing::open_runtime(Peer::options());
    return servers_in("launch:" + url(), *runtime, deadline);
  }

  Server *run = nullptr;
  std::atomic<int> changes{0};

 private:
  std::unique_ptr<nessie::service::Host> host_;
  std::thread thread_;
};

TEST_F(LaunchTest, ProgramsHearWhereAllServersAreInTheirOrder) {
  Peer one(url()), zero(url());
  auto second = one.join(1, "shm://b;ofi://b");
  ASSERT_TRUE(has_joined(1));
  EXPECT_EQ(ask(Deadline::in(milliseconds(100))).error().code, Code::kTimedOut);
  std::thread later([&] {
    ASSERT_TRUE(eventually([&] { return run->describe().ends_with("wait for them: 1"); }));
    auto first = zero.join(0, "shm://a");
    EXPECT_TRUE(first.wait(soon()).ok());  // it is to be killed
  });
  const auto found = ask();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, (std::vector<std::string>{"shm://a", "shm://b;ofi://b"}));
  EXPECT_EQ(run->states()[1].host, "node1");
  EXPECT_EQ(run->states()[1].agent, 42u);
  EXPECT_GE(changes, 2);
  run->kill(0);
  later.join();
}

TEST_F(LaunchTest, TheRunKnowsWhichServersWereStartedAgain_AndWhetherTheyAreThereAgain) {
  Peer agent(url());
  auto server = agent.join(1, "shm://b");
  ASSERT_TRUE(has_joined(1));
  EXPECT_TRUE(agent.client->RESTARTED({1, "was killed", {std::byte{7}}, {}}).ok());
  auto state = run->states()[1];
  ASSERT_EQ(state.restarts.size(), 1u);
  EXPECT_EQ(state.restarts[0]->how, "was killed");
  EXPECT_EQ(state.restarts[0]->ledger, std::vector<std::byte>{std::byte{7}});
  EXPECT_EQ(state.returns, 0u);
  EXPECT_TRUE(agent.client->IS_BACK(1).ok());
  EXPECT_EQ(run->states()[1].returns, 1u);
  EXPECT_EQ(run->states()[1].url, "shm://b");
  EXPECT_EQ(agent.client->RESTARTED({2, "was killed", {}, {}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(agent.client->IS_BACK(2).code(), Code::kInvalidArgument);
  run->kill(1);
  EXPECT_TRUE(server.wait(soon()).ok());
}

TEST(Servers, AListNeedsNoRun) {
  const auto runtime = nssi::testing::open_runtime(Peer::options());
  EXPECT_EQ(*servers_in(" shm://a;ofi://a\tshm://b|ofi://b ", *runtime, soon()),
            (std::vector<std::string>{"shm://a;ofi://a", "shm://b;ofi://b"}));
  EXPECT_EQ(servers_in(" ", *runtime, soon()).error().code, Code::kNotFound);
  EXPECT_FALSE(servers_in("launch:", *runtime, soon()).ok());
}

TEST_F(LaunchTest, AServerThatWillNotComeEndsTheWaiting) {
  Peer agent(url());
  std::thread program([&] {
    const auto found = ask();
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Code::kNotFound);
    EXPECT_EQ(found.error().message, "staging server 1 exited with 2");
  });
  EXPECT_TRUE(agent.client->ENDED({1, "exited with 2", {}, {}}).ok());
  program.join();
}

TEST_F(LaunchTest, ARunThatGivesUpTellsWhoWaits) {
  std::thread program([&] { EXPECT_EQ(ask().error().message, "mpiexec exited with 1"); });
  run->give_up("mpiexec exited with 1");
  run->give_up("something else");
  program.join();
}

TEST_F(LaunchTest, AnAgentThatIsGoneIsALostServer) {
  {
    Peer agent(url());
    auto joined = agent.join(0, "shm://a");
    ASSERT_TRUE(has_joined(0));
    EXPECT_EQ(run->states()[0].its_end, nullptr);
    EXPECT_FALSE(run->states()[0].is_lost);
  }
  ASSERT_TRUE(eventually([&] { return run->states()[0].its_end != nullptr; }));
  EXPECT_NE(run->states()[0].its_end->how.find("on node0 is lost"), std::string::npos);
  EXPECT_TRUE(run->states()[0].is_lost);
}

TEST_F(LaunchTest, AnAgentTellsHowItsServerEnded) {
  Peer agent(url());
  auto joined = agent.join(1, "shm://a");
  ASSERT_TRUE(has_joined(1));
  const std::vector<std::byte> ledger(100'000, std::byte{7});
  EXPECT_TRUE(agent.client->MPI_IS(1, stage::BEGUN).ok());
  EXPECT_TRUE(run->states()[1].mpi_has_begun);
  EXPECT_FALSE(run->states()[1].mpi_is_over);
  EXPECT_TRUE(agent.client->MPI_IS(1, stage::OVER).ok());
  EXPECT_TRUE(run->states()[1].mpi_is_over);
  ending end{1, "was killed by signal 9 (Killed)", {}, {}};
  end.ledger.assign(ledger.begin(), ledger.end());
  EXPECT_TRUE(agent.client->ENDED(end).ok());
  ASSERT_TRUE(run->states()[1].its_end);
  EXPECT_EQ(run->states()[1].its_end->how, end.how);
  EXPECT_EQ(run->states()[1].its_end->ledger.size(), ledger.size());
  const int before = changes;
  agent.runtime.reset();
  ASSERT_TRUE(eventually([&] { return changes > before; }));  // it is gone
  EXPECT_EQ(run->states()[1].its_end->how, end.how);          // what it said stays
  EXPECT_FALSE(run->states()[1].is_lost);
}

TEST_F(LaunchTest, ToBeKilledIsTheAnswer) {
  Peer agent(url());
  run->kill(0);  // nobody there yet
  auto joined = agent.join(0, "shm://a");
  ASSERT_TRUE(has_joined(0));
  run->kill(0);
  EXPECT_TRUE(joined.wait(soon()).ok());
  EXPECT_EQ(run->states()[0].its_end, nullptr);
  agent.runtime.reset();
  EXPECT_TRUE(eventually([&] { return run->states()[0].its_end != nullptr; }));
}

TEST_F(LaunchTest, WhoIsNotExpectedIsRefused) {
  Peer agent(url()), other(url());
  auto joined = agent.join(0, "shm://a");
  ASSERT_TRUE(has_joined(0));
  EXPECT_EQ(other.join(0, "shm://b").wait(soon()).code(), Code::kExists);
  EXPECT_EQ(other.join(2, "shm://b").wait(soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(other.join(1, "").wait(soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(other.client->MPI_IS(7, stage::OVER).code(), Code::kInvalidArgument);
  EXPECT_EQ(other.client->ENDED({7, "", {}, {}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(run->states()[0].url, "shm://a");
}

}  // namespace
}  // namespace launch
