// SPDX-License-Identifier: BSD-3-Clause
// Real servers, killed, stopped and starved.
#include <base/fd.hpp>
#include <services/staging/client/client.hpp>
#include <services/staging/client/watcher.hpp>
#include <services/staging/handle.hpp>
#include <services/staging/process_testing.hpp>
#include <services/staging/server/ledger.hpp>

#include <gtest/gtest.h>
#include <pnetcdf.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace staging {
namespace {

using namespace std::chrono_literals;
using nessie::Code;
using nessie::Deadline;
using testing::contents;
using testing::HalfMemory;
using testing::kVariableBytes;
using testing::kWatchdog;
using testing::kX;
using testing::kY;
using testing::kZ;
using testing::out_of_reach;
using testing::StagingProcess;
using testing::stop_then_go_on;
using testing::wait_for_change;

TEST_F(StagingProcess, AKilledServerIsAnErrorAndItsLedgerTellsWhatIsLost) {
  auto &daemon = start({"--memory", "64M"});
  auto client = connect();
  create(*client, folder_ + "/lost.nc", 2);
  ASSERT_EQ(*put(*client, 0), NC_NOERR);
  ASSERT_EQ(*client->sync(kToken, 0), NC_NOERR);
  ASSERT_EQ(*put(*client, 1), NC_NOERR);
  ::kill(daemon.pid(), SIGKILL);
  EXPECT_EQ(daemon.wait_end(), 128 + SIGKILL);
  EXPECT_EQ(put(*client, 0).code(), Code::kPeerLost);
  EXPECT_FALSE(client->close(kToken, 0, Closing::kEarly, *order_).ok());
  auto lost = read_ledger(folder_ + "/server.0.ledger");
  ASSERT_TRUE(lost.ok()) << lost.error().message;
  ASSERT_EQ(lost->size(), 1u);
  EXPECT_EQ(lost->front().path, path_);
  EXPECT_EQ(lost->front().missing, std::vector<std::string>{"v1[0:63,0:127,0:127]"});
  EXPECT_EQ(lost->front().bytes_acknowledged - lost->front().bytes_in_file, kVariableBytes);
}

TEST_F(StagingProcess, WhoLooksOnIsToldThatTheHomeServerWasKilled) {
  auto &home = start({"--memory", "64M"});
  auto client = connect();
  create(*client, folder_ + "/watched.nc", 1);
  nessie::Config config;
  config.set("servers", home.url());
  const auto watcher = *Watcher::connect(config, Deadline::in(kWatchdog));
  ASSERT_EQ(*put(*client, 0), NC_NOERR);
  client->mark(kToken, {0, 0, 0, 0, true, {}, {}}, *order_);
  std::vector<Mark> marks;
  while (marks.empty()) {
    const auto news = watcher->next(Deadline::in(kWatchdog));
    ASSERT_TRUE(news.ok()) << news.error().message;
    ASSERT_FALSE(news->is_empty());
    for (const auto &file : news->files) marks.insert(marks.end(), file.marks.begin(), file.marks.end());
  }
  std::vector<double> data(data_.size());
  const auto read = [&] {
    return watcher->read(kToken, marks[0], 0, {{0, 0, 0}, {kZ, kY, kX}}, std::as_writable_bytes(std::span(data)),
                         Deadline::in(kWatchdog));
  };
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(data, data_);
  ::kill(home.pid(), SIGKILL);
  EXPECT_EQ(home.wait_end(), 128 + SIGKILL);
  EXPECT_EQ(watcher->next(Deadline::in(kWatchdog)).code(), Code::kPeerLost);
  EXPECT_EQ(watcher->next(Deadline::in(kWatchdog)).code(), Code::kPeerLost);
  EXPECT_EQ(read().code(), Code::kPeerLost);
}

TEST_F(StagingProcess, AStoppedServerIsGivenUpAfterTheTimeout) {
  auto &daemon = start();
  auto owner = connect();
  create(*owner, folder_ + "/stopped.nc", 1);
  auto client = connect("300ms");
  daemon.stop();
  auto written = put(*client, 0);
  daemon.go_on();
  EXPECT_EQ(written.code(), Code::kTimedOut);
}

TEST_F(StagingProcess, WhoDoesNotLendIsGivenUp_OrKnownToBeGone) {
  auto &daemon = start();
  auto owner = connect(), client = connect("300ms");
  create(*owner, folder_ + "/lent.nc", 1);
  const auto identity = identity_of(path_);
  ASSERT_TRUE(client->lend(kToken, identity).ok());
  daemon.stop();
  EXPECT_EQ(client->lend(kToken, identity).code(), Code::kTimedOut);
  ::kill(daemon.pid(), SIGKILL);
  EXPECT_EQ(owner->lend(kToken, identity).code(), Code::kPeerLost);
}

TEST_F(StagingProcess, AServerThatIsKilledWhileItIsAskedToLend_IsLost) {
  auto &daemon = start();
  auto client = connect();
  create(*client, folder_ + "/lent.nc", 1);
  daemon.stop();
  std::thread killer([&] {
    std::this_thread::yield();
    ::kill(daemon.pid(), SIGKILL);
  });
  EXPECT_EQ(client->lend(kToken, identity_of(path_)).code(), Code::kPeerLost);
  killer.join();
}

TEST_F(StagingProcess, AStoppedClientDoesNotHoldUpTheEnd) {
  auto &daemon = start({}, 0, 1, [] { ::setenv("NESSIE_STAGING_TIMEOUT", "300ms", 1); });
  const auto url = daemon.url();
  const pid_t pid = ::fork();
  if (pid == 0) {
    daemon.cut_life_line();                     // is the test's alone
    ::setenv("NESSIE_NNTI_SHM_CMA", "off", 1);  // the data then come only while this process makes progress
    auto client = connect();
    create(*client, folder_ + "/stuck.nc", 1);
    const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
    const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
    const Order order(1);
    std::atomic<int> reads{0};
    std::thread stopper([&] {
      while (reads.load() == 0) std::this_thread::yield();
      ::raise(SIGSTOP);
    });
    for (;; ++reads) (void)client->read(kToken, 0, order, {&item, 1});
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  daemon.cut_life_line();
  EXPECT_EQ(daemon.wait_end(), 0);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
}

void hang(int) {
  for (;;) ::pause();
}

/// The kernel says which process a peer is, whether what crosses their connection is sealed or not.
TEST_F(StagingProcess, WhoIsStoppedIsWaitedFor_AndWhoOnlyHangsIsGivenUp) {
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  for (const auto *encrypt : {"off", "all"}) {
    ::setenv("NESSIE_NNTI_ENCRYPT", encrypt, 1);
    start({}, 0, 1, [] { ::setenv("NESSIE_STAGING_TIMEOUT", "300ms", 1); });
    const auto run_reader = [&](FileToken token, const std::string &path, void (*when_stuck)(int)) {
      const pid_t pid = ::fork();
      if (pid != 0) return programs_.emplace_back(pid);
      ::alarm(120);
      testing::move_data_by_own_doing();
      std::signal(SIGSEGV, when_stuck);
      auto client = connect();
      create(*client, path, 1, kZ, token);
      const Item one{&layout, Piece{0, {0, 0, 0}, {1, 1, 1}, {}}, std::as_writable_bytes(std::span(data_).first(1))};
      bool fine = client->write(token, 0, *order_, {&one, 1}).ok();
      const HalfMemory memory(kVariableBytes, 0);
      out_of_reach = memory.bytes();
      const Item all{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, memory.bytes()};
      const auto read = client->read(token, 0, *order_, {&all, 1});
      fine = fine && read.ok() && *read == NC_NOERR;
      ::_exit(fine ? 0 : 1);
    };
    const auto stopped = run_reader(1, folder_ + "/stopped.nc", &stop_then_go_on);
    ASSERT_TRUE(WIFSTOPPED(wait_for_change(stopped)));
    run_reader(2, folder_ + "/hangs.nc", &hang);
    auto client = connect();
    path_ = folder_ + "/hangs.nc";
    wait_until_drained(*client, 1);
    ASSERT_EQ(client->report(0)->drained.size(), 1u);
    EXPECT_EQ(client->report(0)->drained[0].path, path_);
    ::kill(stopped, SIGCONT);
    EXPECT_EQ(wait_for_change(stopped, 0), 0) << encrypt;
    std::erase(programs_, stopped);
    client.reset();
    daemons_.clear();
    std::filesystem::remove(folder_ + "/server.0.url");
  }
  ::unsetenv("NESSIE_NNTI_ENCRYPT");
}

TEST_F(StagingProcess, StoppedClientsDoNotHoldUpOthers) {
  constexpr std::size_t kPieceBytes = kVariableBytes / kZ;
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  start();
  for (const FileToken program : {1, 2})
    run_until_stuck([&](Client &client) {
      create(client, folder_ + "/stuck" + std::to_string(program) + ".nc", 1, kZ, program);
      const HalfMemory memory(kVariableBytes, 0);
      std::vector<Item> items;
      for (std::int64_t z = 0; z < kZ; ++z)
        items.push_back({&layout, Piece{0, {z, 0, 0}, {1, kY, kX}, {}},
                         memory.bytes().subspan(static_cast<std::size_t>(z) * kPieceBytes, kPieceBytes)});
      (void)client.read(program, 0, *order_, items);
    });
  auto client = connect();
  create(*client, folder_ + "/free.nc", 1);
  const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
  EXPECT_EQ(*client->read(kToken, 0, *order_, {&item, 1}), NC_NOERR);
}

TEST_F(StagingProcess, WhatAStoppedClientHasNotPutYetHoldsUpNobodyWhoLooks) {
  start();
  run_until_stuck([&](Client &client) {
    create(client, folder_ + "/looked_at.nc", 1);
    const HalfMemory memory(kVariableBytes, 0);
    const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
    const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, memory.bytes()};
    (void)client.write(kToken, 0, *order_, {&item, 1});
  });
  auto other = connect();
  EXPECT_TRUE(other->settle({{}, folder_ + "/looked_at.nc"}).ok());
}

TEST_F(StagingProcess, ARecordOfWhichAKilledProgramSentAPartDoesNotCount) {
  constexpr std::int64_t kRecords = 64;
  for (const auto *mode : {"caching", "direct"}) {
    auto &daemon = start({"--memory", "8M", "--mode", mode});
    path_ = folder_ + "/" + mode + ".nc";
    const auto program = run_until_stuck([&](Client &client) {
      create(client, path_, 1, 0);
      const HalfMemory memory(kVariableBytes, kVariableBytes / 2);
      const VariableLayout layout{0, 8, true, {0, kY, kX}};
      const Item item{&layout, Piece{0, {0, 0, 0}, {kRecords, kY, kX}, {}}, memory.bytes()};
      (void)client.write(kToken, 0, *order_, {&item, 1});
    });
    ::kill(program, SIGKILL);
    ::waitpid(program, nullptr, 0);
    std::erase(programs_, program);
    daemon.cut_life_line();
    daemon.wait_end();
    EXPECT_EQ(contents(path_).substr(0, 12), std::string("CDF\5\0\0\0\0\0\0\0\0", 12)) << mode;
    EXPECT_GT(std::filesystem::file_size(path_), 1u << 20) << mode << ": nothing had been sent";
    daemons_.clear();
    std::filesystem::remove(folder_ + "/server.0.url");
  }
}

TEST_F(StagingProcess, TheDeathOfTheParentDrainsWhatWasAcknowledged) {
  auto &daemon = start();
  auto client = connect();
  create(*client, folder_ + "/drained.nc", 1);
  ASSERT_EQ(*put(*client, 0), NC_NOERR);
  daemon.cut_life_line();
  EXPECT_EQ(daemon.wait_end(), 0);
  EXPECT_TRUE(in_file(0, 0));
  EXPECT_NE(contents(folder_ + "/server.0.report").find("\"bytes_drained\": 8388608"), std::string::npos);
}

TEST_F(StagingProcess, WhatBatchSystemsSendDoesNotEndAServerWhoseParentLives) {
  auto &daemon = start();
  auto client = connect();
  create(*client, folder_ + "/last.nc", 1);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) ::kill(daemon.pid(), number);
  ASSERT_EQ(*put(*client, 0), NC_NOERR);
  daemon.cut_life_line();
  EXPECT_EQ(daemon.wait_end(), 0);
  EXPECT_TRUE(in_file(0, 0));
}

TEST_F(StagingProcess, InterruptsAreForTheProgramOnly) {
  auto &daemon = start();
  auto client = connect();
  ::kill(daemon.pid(), SIGINT);
  EXPECT_TRUE(client->report(0).ok());
}

TEST_F(StagingProcess, AKilledClientsFileIsDrainedAndClosed) {
  auto &daemon = start();
  const auto url = daemon.url();
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto client = connect();
    create(*client, folder_ + "/orphan.nc", 1);
    const bool fine = put(*client, 0).ok();
    ::raise(fine ? SIGKILL : SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  path_ = folder_ + "/orphan.nc";
  auto client = connect();
  const auto deadline = Deadline::in(kWatchdog);
  while (client->report(0)->drained.empty() && !deadline.passed()) std::this_thread::yield();
  ASSERT_TRUE(client->settle({{}, path_}).ok());
  EXPECT_TRUE(in_file(0, 0));
}

/// How often a process has a file open.
std::size_t descriptors_on(pid_t process, const std::string &path) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored))
    count += std::filesystem::read_symlink(entry, ignored) == path ? 1 : 0;
  return count;
}

TEST_F(StagingProcess, WhatIsHeldForAProgramThatIsKilledBeforeItAttachesIt_IsForgotten) {
  for (int index : {0, 1}) start({}, index, 2);
  auto other = connect();
  path_ = folder_ + "/held.nc";
  std::unique_ptr<Client> client;
  const auto create_only = [&] {
    client = connect();
    const auto file = testing::program_file(path_);
    const auto created = client->create({kToken, path_, NC_CLOBBER | NC_64BIT_DATA, {}}, file.get());
    return created.ok() && *created == NC_NOERR;
  };
  const auto program = run(create_only, [] { return true; });
  for (const auto &daemon : daemons_) EXPECT_GT(descriptors_on(daemon->pid(), path_), 0u);
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  std::erase(programs_, program);
  const auto is_held = [&](const auto &daemon) { return descriptors_on(daemon->pid(), path_) > 0; };
  const auto deadline = Deadline::in(kWatchdog);
  while (std::ranges::any_of(daemons_, is_held) && !deadline.passed()) ::usleep(1000);
  EXPECT_FALSE(std::ranges::any_of(daemons_, is_held));
  create(*other, path_, 3);
  for (int v = 0; v < 3; ++v) ASSERT_EQ(*put(*other, v), NC_NOERR);
  ASSERT_EQ(*other->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  for (int v = 0; v < 3; ++v) EXPECT_TRUE(in_file(v, 2 - v)) << v;
  EXPECT_FALSE(std::ranges::any_of(daemons_, is_held));
}

TEST_F(StagingProcess, ShutdownAnswersAndExits) {
  for (int index : {0, 1}) start({}, index, 2);
  auto client = connect();
  create(*client, folder_ + "/two.nc", 3);
  for (int v = 0; v < 3; ++v) ASSERT_EQ(*put(*client, v), NC_NOERR);
  ASSERT_EQ(*client->close(kToken, 0, Closing::kEarly, *order_), NC_NOERR);
  std::uint64_t drained = 0;
  for (int s : {0, 1}) {
    auto report = client->shutdown(s, Deadline::in(kWatchdog));
    ASSERT_TRUE(report.ok()) << report.error().message;
    drained += report->bytes_drained;
  }
  EXPECT_EQ(drained, 3 * kVariableBytes);
  client.reset();
  for (auto &daemon : daemons_) EXPECT_EQ(daemon->wait_end(), 0);
  for (int v = 0; v < 3; ++v) EXPECT_TRUE(in_file(v, 2 - v));
}

/// Peak resident memory of a process, in KiB.
std::uint64_t peak_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") return status >> word ? std::stoull(word) : 0;
  return 0;
}

TEST_F(StagingProcess, MoreDataThanMemoryPassThroughTheBudget) {
  auto &daemon = start({"--memory", "8M"});
  auto client = connect();
  create(*client, folder_ + "/large.nc", 12);
  for (int v = 0; v < 12; ++v) ASSERT_EQ(*put(*client, v), NC_NOERR);
  ASSERT_EQ(*client->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  for (int v = 0; v < 12; ++v) EXPECT_TRUE(in_file(v, 11 - v)) << v;
  const auto report = *client->report(0);
  EXPECT_LE(report.memory_high_bytes, 8u << 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(peak_kib(daemon.pid()), (8u << 10) + (64u << 10) + 256);
#endif
}

TEST_F(StagingProcess, DataThatLieScatteredAreDrainedWithLittleMemory) {
  auto &daemon = start({"--memory", "8M"});
  auto client = connect();
  create(*client, folder_ + "/scattered.nc", 1);
  ASSERT_EQ(*put(*client, 0), NC_NOERR);
  ASSERT_EQ(*client->sync(kToken, 0), NC_NOERR);
  const auto together = peak_kib(daemon.pid());
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  const auto half = std::as_writable_bytes(std::span(data_).first(data_.size() / 2));
  const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX / 2}, {1, 1, 2}}, half};
  ASSERT_EQ(*client->write(kToken, 0, *order_, {&item, 1}), NC_NOERR);
  order_->know(order_->end_call());
  ASSERT_EQ(*client->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(peak_kib(daemon.pid()), together + (6u << 10));
#endif
}

// --- behind the program's back ------------------------------------------------------------------------------------------

TEST_F(StagingProcess, PutsThatHaveReturnedSurviveTheirProgram) {
  for (int index : {0, 1}) start({}, index, 2);
  auto other = connect();
  for (std::size_t round = 1; round <= 3; ++round) {
    path_ = folder_ + "/killed" + std::to_string(round) + ".nc";
    expect_killed(run_to_put());
    wait_until_drained(*other, round);
    EXPECT_TRUE(in_file(0, 0)) << round;
  }
}

TEST_F(StagingProcess, PutsSurviveTheirProgramAlthoughTheServerLooksAtThemAfterItsDeath) {
  auto &daemon = start();
  path_ = folder_ + "/late.nc";
  const auto program = run_to_put();
  daemon.stop();
  expect_killed(program);
  daemon.go_on();
  auto other = connect();
  wait_until_drained(*other, 1);
  EXPECT_TRUE(in_file(0, 0));
}

TEST_F(StagingProcess, PutsSurviveTheirProgramAlthoughTheServerIsToldToEndBeforeItLooksAtThem) {
  auto &daemon = start();
  path_ = folder_ + "/end.nc";
  const auto program = run_to_put();
  daemon.stop();
  expect_killed(program);
  daemon.cut_life_line();
  daemon.go_on();
  EXPECT_EQ(daemon.wait_end(), 0);
  EXPECT_TRUE(in_file(0, 0));
}

TEST_F(StagingProcess, PutsOfAllProcessesSurviveThemAlthoughTheServersLookAtThemAfterTheirDeath) {
  for (int index : {0, 1}) start({}, index, 2);
  path_ = folder_ + "/all.nc";
  std::vector<pid_t> programs;
  std::unique_ptr<Client> client;
  for (int rank = 0; rank < 4; ++rank)
    programs.push_back(run(
        [&] {
          client = connect();
          if (rank == 0)
            create(*client, path_, 4);
          else
            order_.emplace(2);
          return true;
        },
        [&] { return put_pieces(*client, rank, 4); }));
  for (auto &daemon : daemons_) daemon->stop();
  for (const auto program : programs) expect_killed(program);
  for (auto &daemon : daemons_) daemon->go_on();
  auto other = connect();
  wait_until_drained(*other, 1);
  for (int v = 0; v < 4; ++v) EXPECT_TRUE(in_file(v, 3 - v)) << v;
}

TEST_F(StagingProcess, ACloseWaitsForThePutsOfAProcessThatIsDead) {
  auto &daemon = start();
  auto owner = connect();
  create(*owner, folder_ + "/closed.nc", 2);
  std::unique_ptr<Client> client;
  const auto program = run(
      [&] {
        client = connect();
        return true;
      },
      [&] { return put_pieces(*client, 1, 4); });
  ASSERT_TRUE(put_pieces(*owner, 0, 4));
  daemon.stop();
  expect_killed(program);
  daemon.go_on();
  order_->know(std::vector<std::int64_t>{16});
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  for (int v : {0, 1}) EXPECT_TRUE(in_file(v, 1 - v)) << v;
}

TEST_F(StagingProcess, ACloseWhoseWritesWereNeverSentEndsWithAnError) {
  auto &daemon = start({}, 0, 1, [] { ::setenv("NESSIE_STAGING_TIMEOUT", "300ms", 1); });
  auto owner = connect();
  create(*owner, folder_ + "/incomplete.nc", 1);
  std::unique_ptr<Client> client;
  const auto program = run(
      [&] {
        client = connect();
        return true;
      },
      [] { return true; });
  ASSERT_TRUE(put_pieces(*owner, 0, 4));
  expect_killed(program);
  order_->know(std::vector<std::int64_t>{1});  // as if it had said so before it died
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kEarly, *order_), NC_NOERR);
  ASSERT_TRUE(owner->settle({{}, path_}).ok());
  EXPECT_TRUE(in_file(0, 0));
  const auto report = *owner->report(0);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures.front().path, path_);
  EXPECT_EQ(report.failures.front().nc_error, NC_EWRITE);
  owner.reset();
  daemon.cut_life_line();
  EXPECT_EQ(daemon.wait_end(), 1);
}

TEST_F(StagingProcess, AProgramThatDiesBeforeItHasSentWhatItsCloseKnowsOfLeavesAnError) {
  auto &daemon = start();
  std::unique_ptr<Client> client;
  path_ = folder_ + "/gone.nc";
  expect_killed(run(
      [&] {
        client = connect();
        create(*client, path_, 1);
        return true;
      },
      [&] {
        if (!put_pieces(*client, 0, 4)) return false;
        order_->know(std::vector<std::int64_t>{1});
        return client->close(kToken, 0, Closing::kEarly, *order_).ok();
      }));
  daemon.cut_life_line();
  EXPECT_EQ(daemon.wait_end(), 1);
  EXPECT_TRUE(in_file(0, 0));
  EXPECT_NE(contents(folder_ + "/server.0.report").find("gone.nc"), std::string::npos);
}

TEST_F(StagingProcess, ManyClientsPassThroughTheBudget) {
  constexpr int kClients = 16;
  auto &daemon = start({"--memory", "8M"});
  std::unique_ptr<Client> client;
  std::vector<pid_t> programs;
  for (int rank = 0; rank < kClients; ++rank)
    programs.push_back(run(
        [&] {
          client = connect();
          order_.emplace(1);
          return true;
        },
        [&] {
          return put_pieces(*client, rank, 2) && put_pieces(*client, rank, 2) && client->finish_writes(kToken).ok();
        }));
  auto owner = connect();
  create(*owner, folder_ + "/many.nc", kClients);
  for (const auto program : programs) ::kill(program, SIGCONT);
  for (const auto program : programs) expect_killed(program);
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  for (int v = 0; v < kClients; ++v) EXPECT_TRUE(in_file(v, kClients - 1 - v)) << v;
  EXPECT_LE(owner->report(0)->memory_high_bytes, 8u << 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(peak_kib(daemon.pid()), (8u << 10) + (64u << 10) + 256 * kClients);
#endif
}

/// Writes two variables where only one finds room; the second must be reported as missing.
void expect_disk_error(Client &client, const std::function<Result<int>(int)> &put, FileToken token,
                       const std::string &reason) {
  for (int v = 0; v < 2; ++v) ASSERT_EQ(*put(v), NC_NOERR);
  auto closed = client.close(token, 0, Closing::kDurable, Order(client.servers()));
  ASSERT_TRUE(closed.ok()) << closed.error().message;
  EXPECT_NE(*closed, NC_NOERR);
  auto report = client.shutdown(0, Deadline::in(kWatchdog));
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->failures.size(), 1u);
  const auto &failure = report->failures.front();
  EXPECT_EQ(failure.nc_error, *closed);
  EXPECT_NE(failure.message.find(reason), std::string::npos) << failure.message;
  ASSERT_FALSE(failure.missing.empty());
  EXPECT_EQ(failure.missing.back().substr(0, 3), "v1[");
  EXPECT_GT(failure.bytes_acknowledged, failure.bytes_in_file);
}

TEST_F(StagingProcess, AFileTooLargeForTheSystemIsReported) {
  auto &daemon = start({}, 0, 1, [] {
    const rlimit limit{12 << 20, 12 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  auto client = connect();
  create(*client, folder_ + "/limited.nc", 2);
  expect_disk_error(
      *client, [&](int v) { return put(*client, v); }, kToken, "File too large");
  client.reset();
  EXPECT_NE(daemon.wait_end(), 0);
}

/// What leaves early, because memory is short, fails as what leaves when it is time.
TEST_F(StagingProcess, ADirectPutWhosePagesLeftEarlyIsToldOfTheirError) {
  start({"--memory", "64K", "--mode", "direct"}, 0, 1, [] {
    const rlimit limit{10 << 20, 10 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  auto client = connect();
  create(*client, folder_ + "/limited.nc", 2);
  constexpr std::int64_t kRows = 40;  // of 1 KiB: small enough to be packed with others
  std::vector<VariableLayout> layouts = {{0, 8, false, {kZ, kY, kX}}, {1, 8, false, {kZ, kY, kX}}};
  const auto rows = std::as_writable_bytes(std::span(data_)).first(kRows * kX * 8);
  std::vector<Item> items = {{&layouts[1], Piece{1, {kZ - 1, 0, 0}, {1, kRows, kX}, {}}, rows}};
  for (std::int64_t z = 0; z < 8; ++z) items.push_back({&layouts[0], Piece{0, {z, 0, 0}, {1, kRows, kX}, {}}, rows});
  const auto written = client->write(kToken, 0, *order_, items);
  ASSERT_TRUE(written.ok());
  EXPECT_NE(*written, NC_NOERR);
  items.erase(items.begin());
  const auto later = client->write(kToken, 0, *order_, items);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(*later, NC_NOERR) << "it is in the file";
}

TEST_F(StagingProcess, AFullDiskIsReported) {
  const auto disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=12m") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  mounted_ = disk;
  auto &daemon = start({}, 0, 1, testing::have_no_patience);
  auto client = connect();
  create(*client, disk + "/full.nc", 2);
  expect_disk_error(
      *client, [&](int v) { return put(*client, v); }, kToken, "No space left on device");
  client.reset();
  EXPECT_EQ(daemon.wait_end(), 1);
}

TEST_F(StagingProcess, AFullDiskIsToldAtTheNextCallOnce) {
  const auto disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  mounted_ = disk;
  start({}, 0, 1, testing::have_no_patience);
  auto client = connect();
  create(*client, disk + "/full.nc", 1);
  ASSERT_EQ(*put(*client, 0), NC_NOERR);
  EXPECT_NE(*client->sync(kToken, 0), NC_NOERR);
  EXPECT_EQ(*client->sync(kToken, 0), NC_NOERR);
}

TEST_F(StagingProcess, DefinitionsStayAlthoughEarlierDataFindNoRoom) {
  const auto disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  mounted_ = disk;
  for (const int servers : {1, 2}) {
    for (int index = 0; index < servers; ++index) start({}, index, servers, testing::have_no_patience);
    auto client = connect();
    create(*client, disk + "/full" + std::to_string(servers) + ".nc", 1);
    ASSERT_EQ(*put(*client, 0), NC_NOERR);
    EndDefArgs args;
    args.file = kToken;
    args.definitions = {testing::var("later", NC_DOUBLE, {2})};
    const auto defined = *client->enddef(args, false);
    EXPECT_EQ(defined.nc_error, NC_NOERR);
    EXPECT_NE(contents(path_).find("later"), std::string::npos);
    int told = *client->finish_writes(kToken);
    for (int call = 0; call < 2; ++call)
      if (const int error = *client->sync(kToken, 0); told == NC_NOERR) told = error;
    EXPECT_NE(told, NC_NOERR);
    EXPECT_EQ(*client->sync(kToken, 0), NC_NOERR);
    client.reset();
    daemons_.clear();
    for (int index = 0; index < servers; ++index)
      std::filesystem::remove(folder_ + "/server." + std::to_string(index) + ".url");
    std::filesystem::remove(path_);
  }
}

}  // namespace
}  // namespace staging
