// SPDX-License-Identifier: BSD-3-Clause
// Files that outlive a server: it is killed, and another one is started in its place.
#include <services/staging/process_testing.hpp>

#include <atomic>
#include <functional>
#include <random>

namespace staging::testing {
namespace {

class Kept : public StagingProcess {
 protected:
  Daemon &start_kept(const std::string &durability, int index = 0, int servers = 1) {
    flags_ = {"--set", "durability=" + durability, "--set",    "staging.log=" + folder_ + "/logs",
              "--set", "staging.timeout=5s",       "--memory", memory_};
    return start(flags_, index, servers);
  }
  /// Kills a server, and starts another one in its place.
  void restart(int index = 0) {
    const auto url = kill(index);
    bring_back(index, url);
  }
  std::string kill(int index = 0) {
    auto &daemon = *daemons_[static_cast<std::size_t>(index)];
    auto url = daemon.url();
    ::kill(daemon.pid(), SIGKILL);
    EXPECT_EQ(daemon.wait_end(), 128 + SIGKILL);
    return url;
  }
  void bring_back(int index, const std::string &url) {
    auto flags = flags_;
    flags.insert(flags.end(), {"--set", "nnti.listen_at=" + url});
    const auto servers = static_cast<int>(daemons_.size());
    auto &place = daemons_[static_cast<std::size_t>(index)];
    place.reset();
    place = std::make_unique<Daemon>(folder_, index, servers, flags);
  }
  std::string file(const std::string &name) const { return folder_ + "/" + name; }
  /// What was written is kept: with the servers that have it, any one of them may die now.
  void await_kept(Client &client) {
    const auto finished = client.finish_writes(kToken);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
    EXPECT_EQ(*finished, NC_NOERR);
  }
  /// Not all of it may be in the file yet.
  void close_early(Client &client) {
    const auto closed = client.close(kToken, 0, Closing::kEarly, *order_);
    ASSERT_TRUE(closed.ok() && *closed == NC_NOERR);
  }
  /// A program closes its file, and ends; its server is killed. `meanwhile` is called while the file is open.
  void leave_closed(
      int variables, const std::function<void()> &meanwhile = [] {}) {
    const auto client = connect();
    create(*client, file("a.nc"), variables);
    for (int v = 0; v < variables; ++v) EXPECT_TRUE(put(*client, v).ok());
    meanwhile();
    ASSERT_NO_FATAL_FAILURE(close_early(*client));
    kill();
  }
  void close(Client &client) {
    const auto closed = client.close(kToken, 0, Closing::kDurable, *order_);
    ASSERT_TRUE(closed.ok()) << closed.error().message;
    EXPECT_EQ(*closed, NC_NOERR);
  }
  void define_anew(Client &client) {
    EndDefArgs args;
    args.file = kToken, args.definitions = {attribute("state", "defined anew")};
    const auto ended = client.enddef(args, false);
    ASSERT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
    order_.emplace(client.servers());
  }
  /// Of a variable; all of it is in the file.
  void put_and_close_another(Client &client, const std::string &path) {
    constexpr FileToken kOther = 78;
    const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
    create_file(client, kOther, path, {dim("z", kZ), dim("y", kY), dim("x", kX), var("v0", NC_DOUBLE, {0, 1, 2})});
    Order order(client.servers());
    const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
    EXPECT_TRUE(client.write(kOther, 0, order, {&item, 1}).ok());
    order.know(order.end_call());
    const auto closed = client.close(kOther, 0, Closing::kDurable, order);
    ASSERT_TRUE(closed.ok() && *closed == NC_NOERR);
  }
  bool has_log(int index = 0) const {
    return std::filesystem::exists(folder_ + "/logs/server." + std::to_string(index));
  }
  void expect_whole(int variables) {
    for (int v = 0; v < variables; ++v) EXPECT_TRUE(in_file(v, variables - 1 - v)) << "variable " << v;
  }
  /// Ends a server in order.
  void end(int index = 0, int expected = 0) {
    auto &daemon = *daemons_[static_cast<std::size_t>(index)];
    (void)daemon.url();  // who is told to end before it listens begins nothing
    daemon.cut_life_line();
    EXPECT_EQ(daemon.wait_end(), expected);
  }

  std::vector<std::string> flags_;
  std::string memory_ = "512M";
};

class KeptAs : public Kept, public ::testing::WithParamInterface<const char *> {};
INSTANTIATE_TEST_SUITE_P(, KeptAs, ::testing::Values("logged", "durable"));

TEST_P(KeptAs, AServerThatDiesBetweenWritesIsNotNoticed) {
  start_kept(GetParam());
  const auto client = connect();
  create(*client, file("a.nc"), 4);
  for (int v = 0; v < 4; ++v) {
    EXPECT_EQ(put(*client, v).ok(), true);
    if (v % 2 == 0) restart();
  }
  close(*client);
  expect_whole(4);
  end();
  EXPECT_FALSE(has_log()) << "what is in the files is kept no longer";
}

TEST_P(KeptAs, AServerThatDiesBeforeItIsAskedForTheFirstTimeIsNotNoticed) {
  start_kept(GetParam());
  const auto client = connect();
  create(*client, file("a.nc"), 1);
  restart();
  EXPECT_TRUE(put(*client, 0).ok());
  close(*client);
  expect_whole(1);
}

TEST_F(Kept, WhatWasClosedIsFinishedWithoutItsProgram) {
  start_kept("logged");
  ASSERT_NO_FATAL_FAILURE(leave_closed(3));
  bring_back(0, "");
  const auto other = connect();
  ASSERT_NE(other, nullptr);
  ASSERT_TRUE(other->settle({{}, path_}).ok());
  expect_whole(3);
  end();
  EXPECT_FALSE(has_log());
}

TEST_F(Kept, WhatAProgramLeftThatDiedWithItsServerIsFinished) {
  start_kept("logged");
  path_ = file("a.nc");
  const auto program = run_to_put();
  ::kill(program, SIGCONT);
  ::usleep(20000);
  const auto url = kill();
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  std::erase(programs_, program);
  bring_back(0, url);
  end();
  EXPECT_FALSE(has_log());
}

TEST_F(Kept, AFileThatWasRenamedIsGivenOnceMore) {
  start_kept("logged");
  const auto client = connect();
  create(*client, file("a.nc"), 2);
  EXPECT_TRUE(put(*client, 0).ok());
  std::filesystem::rename(path_, file("b.nc"));
  restart();
  EXPECT_TRUE(put(*client, 1).ok());
  close(*client);
  path_ = file("b.nc");
  expect_whole(2);
  EXPECT_FALSE(std::filesystem::exists(file("a.nc")));
}

TEST_F(Kept, AFileThatWasRenamedWhileItWasOpen_IsFinishedWithoutItsProgram) {
  start_kept("logged");
  ASSERT_NO_FATAL_FAILURE(leave_closed(3, [&] { std::filesystem::rename(path_, file("b.nc")); }));
  bring_back(0, "");
  end();
  path_ = file("b.nc");
  expect_whole(3);
  EXPECT_FALSE(has_log());
}

TEST_F(Kept, AFileThatWasRenamedWhenItWasClosed_IsFinished) {
  start_kept("logged");
  ASSERT_NO_FATAL_FAILURE(leave_closed(3));
  std::filesystem::rename(path_, file("b.nc"));
  bring_back(0, "");
  end();
  path_ = file("b.nc");
  expect_whole(3);
  EXPECT_FALSE(has_log());
}

TEST_F(Kept, AnotherFileOfTheSameNameIsLeftAlone) {
  start_kept("logged");
  std::string url;
  {
    const auto client = connect();
    create(*client, file("a.nc"), 1);
    EXPECT_TRUE(put(*client, 0).ok());
    ASSERT_NO_FATAL_FAILURE(close_early(*client));
    url = kill();
  }
  std::filesystem::create_directory(file("elsewhere"));
  std::filesystem::rename(path_, file("elsewhere") + "/moved.nc");
  std::ofstream(path_) << "another one";
  bring_back(0, url);
  end(0, 1);  // it says that it could not finish it
  EXPECT_EQ(contents(path_), "another one");
  EXPECT_TRUE(has_log()) << "it cannot be put where it belongs";
}

TEST_F(Kept, OneOfTwoServersMayDie) {
  start_kept("logged", 0, 2);
  start_kept("logged", 1, 2);
  const auto client = connect();
  create(*client, file("a.nc"), 4);
  for (int v = 0; v < 4; ++v) {
    EXPECT_TRUE(put(*client, v).ok());
    restart(v % 2);
  }
  close(*client);
  expect_whole(4);
}

TEST_F(Kept, ItMayDieInDefineMode) {
  start_kept("logged");
  const auto client = connect();
  path_ = file("a.nc");
  order_.emplace(1);
  const auto created =
      client->create({kToken, path_, NC_CLOBBER | NC_64BIT_DATA, {}, {}, 1}, program_file(path_).get());
  ASSERT_TRUE(created.ok() && *created == NC_NOERR);
  restart();
  EXPECT_TRUE(client->define({kToken, {dim("z", kZ), dim("y", kY)}}));
  restart();
  EndDefArgs args;
  args.file = kToken, args.definitions = {dim("x", kX), var("v0", NC_DOUBLE, {0, 1, 2})};
  const auto ended = client->enddef(args, true);
  ASSERT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
  restart();
  EXPECT_TRUE(put(*client, 0).ok());
  EndDefArgs more;
  more.file = kToken, more.definitions = {var("v1", NC_DOUBLE, {0, 1, 2})};
  const auto redefined = client->enddef(more, false);
  ASSERT_TRUE(redefined.ok() && redefined->nc_error == NC_NOERR);
  order_.emplace(1);  // processes count anew
  restart();
  EXPECT_TRUE(put(*client, 1).ok());
  close(*client);
  expect_whole(2);
}

TEST_F(Kept, AWriteMayHaveManyPieces) {
  start_kept("logged");
  const auto client = connect();
  create(*client, file("a.nc"), 1);
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<double>(i);
  std::vector<Item> rows;
  for (std::int64_t z = 0; z < kZ; ++z)
    for (std::int64_t y = 0; y < kY; ++y)
      rows.push_back(
          {&layout, Piece{0, {z, y, 0}, {1, 1, kX}, {}},
           std::as_writable_bytes(std::span(data_).subspan(static_cast<std::size_t>((z * kY + y) * kX), kX))});
  const auto written = client->write(kToken, 0, *order_, rows);
  ASSERT_TRUE(written.ok() && *written == NC_NOERR);
  order_->know(order_->end_call());
  restart();
  close(*client);
  expect_whole(1);
}

TEST_F(Kept, DefinitionsMayBeLong) {
  constexpr int kDimensions = 800;  // with names that are more than a record of a log has room for
  start_kept("logged");
  const auto client = connect();
  path_ = file("a.nc");
  order_.emplace(1);
  const auto created =
      client->create({kToken, path_, NC_CLOBBER | NC_64BIT_DATA, {}, {}, 1}, program_file(path_).get());
  ASSERT_TRUE(created.ok() && *created == NC_NOERR);
  AmendArgs many;
  many.file = kToken, many.definitions = {dim("z", kZ), dim("y", kY), dim("x", kX)};
  for (int i = 0; i < kDimensions; ++i) many.definitions.push_back(dim(std::string(200, 'd') + std::to_string(i), 1));
  many.definitions.push_back(var("v0", NC_DOUBLE, {0, 1, 2}));
  ASSERT_EQ(*client->amend(many), NC_NOERR);
  restart();
  EndDefArgs args;
  args.file = kToken;
  const auto ended = client->enddef(args, true);
  ASSERT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
  const auto put = this->put(*client, 0);
  ASSERT_TRUE(put.ok()) << put.error().message;
  close(*client);
  expect_whole(1);
}

TEST_F(Kept, BothOfTwoServersMayDieWhileAFileIsMade) {
  start_kept("logged", 0, 2);
  start_kept("logged", 1, 2);
  const auto client = connect();
  path_ = file("a.nc");
  order_.emplace(2);
  const auto both_die = [&] {
    for (int server = 0; server < 2; ++server) {
      restart(server);
      EXPECT_TRUE(client->report(server).ok()) << "this program is back at the next one";
    }
  };
  const auto created =
      client->create({kToken, path_, NC_CLOBBER | NC_64BIT_DATA, {}, {}, 1}, program_file(path_).get(), both_die);
  ASSERT_TRUE(created.ok() && *created == NC_NOERR);
  EndDefArgs args;
  args.file = kToken, args.definitions = {dim("z", kZ), dim("y", kY), dim("x", kX), var("v0", NC_DOUBLE, {0, 1, 2})};
  const auto ended = client->enddef(args, true);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  ASSERT_EQ(ended->nc_error, NC_NOERR);
  EXPECT_TRUE(put(*client, 0).ok());
  close(*client);
  expect_whole(1);
}

TEST_F(Kept, AReaderGetsWhatWasWritten) {
  start_kept("logged");
  const auto client = connect();
  create(*client, file("a.nc"), 1);
  EXPECT_TRUE(put(*client, 0).ok());
  restart();
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  std::vector<double> read(data_.size());
  const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(read))};
  const auto got = client->read(kToken, 0, *order_, {&item, 1});
  ASSERT_TRUE(got.ok() && *got == NC_NOERR);
  EXPECT_EQ(read, data_);
  close(*client);
}

TEST_F(Kept, WithoutAnotherOneInItsPlaceTheErrorComesInTime) {
  start_kept("logged");
  const auto client = connect("1");
  create(*client, file("a.nc"), 1);
  kill();
  const auto begun = std::chrono::steady_clock::now();
  const auto synced = client->sync(kToken, 0);
  ASSERT_FALSE(synced.ok());
  EXPECT_EQ(synced.error().code, nessie::Code::kPeerLost);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

/// Servers that are gone for good.
class Gone : public Kept {
 protected:
  static constexpr int kServers = 3;
  static constexpr double kTimeout = 4;
  void start_all() {
    for (int index = 0; index < kServers; ++index) start_kept("logged", index, kServers);
    client_ = connect(std::to_string(static_cast<int>(kTimeout)));
    create(*client_, file("a.nc"), 3);
    EXPECT_TRUE(put(*client_, 0).ok());
  }
  double seconds_until_sync_fails() {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_FALSE(client_->sync(kToken, 0).ok());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }
  std::unique_ptr<Client> client_;
};

TEST_F(Gone, SeveralServersThatDieAreWaitedForTogether) {
  start_all();
  for (int index = 0; index < kServers; ++index) kill(index);
  EXPECT_LT(seconds_until_sync_fails(), 2 * kTimeout);
}

TEST_F(Gone, SeveralServersThatAreSilentAreWaitedForTogether) {
  start_all();
  for (auto &daemon : daemons_) daemon->stop();
  EXPECT_LT(seconds_until_sync_fails(), 2 * kTimeout);
}

TEST_F(Kept, ItMayDieThoughWhatItHadWasReleased) {
  memory_ = "8M";
  start_kept("replicated", 0, 2);
  start_kept("replicated", 1, 2);
  const auto client = connect();
  create(*client, file("a.nc"), 6);
  for (int v = 0; v < 6; ++v) {
    EXPECT_TRUE(put_pieces(*client, v, 8));
    ASSERT_NO_FATAL_FAILURE(await_kept(*client));
    if (v % 2 == 1) restart(v / 2 % 2);
  }
  close(*client);
  expect_whole(6);
}

/// Its copies are with the next server, which is not there now.
TEST_F(Kept, ItMayDieWhileNobodyHasItsCopies) {
  constexpr int kServers = 3;
  constexpr std::int64_t kSome = 8;
  for (int index = 0; index < kServers; ++index) start_kept("replicated", index, kServers);
  const auto client = connect();
  create(*client, file("a.nc"), 2);
  EXPECT_TRUE(put(*client, 0).ok());
  ASSERT_NO_FATAL_FAILURE(await_kept(*client));
  const auto next = kill(1);
  EXPECT_TRUE(put_planes(*client, 1, 0, kSome));
  ASSERT_NO_FATAL_FAILURE(await_kept(*client));
  restart(0);
  EXPECT_TRUE(put_planes(*client, 1, kSome, kSome));
  bring_back(1, next);
  EXPECT_TRUE(put_planes(*client, 1, 2 * kSome, kZ - 2 * kSome));
  close(*client);
  expect_whole(2);
  for (const auto &daemon : daemons_) daemon->cut_life_line();  // each waits until no other one needs it
  for (int index = 0; index < kServers; ++index) {
    end(index);
    EXPECT_FALSE(has_log(index));
  }
}

/// Other servers than its home let go of a file whose definitions change, and take it up again.
TEST_F(Kept, AFileThatIsDefinedAnewIsNotTakenForOneThatIsGone) {
  constexpr int kServers = 2;
  for (int index = 0; index < kServers; ++index) start_kept("logged", index, kServers);
  const auto client = connect();
  create(*client, file("a.nc"), 2);
  EXPECT_TRUE(put(*client, 0).ok());
  ASSERT_NO_FATAL_FAILURE(define_anew(*client));
  EXPECT_TRUE(put(*client, 1).ok());
  ASSERT_NO_FATAL_FAILURE(put_and_close_another(*client, file("b.nc")));
  for (int index = 0; index < kServers; ++index) restart(index);
  close(*client);
  expect_whole(2);
}

/// A copy of what may be moved is where a log would be, which may be needed later.
TEST_F(Kept, WhatIsKeptOfAFileThatIsDefinedAnewIsTheUsersAlone) {
  for (int index = 0; index < 2; ++index) start_kept("replicated", index, 2);
  const auto client = connect();
  create(*client, file("a.nc"), 1);
  ASSERT_NO_FATAL_FAILURE(define_anew(*client));
  EXPECT_TRUE(has_log(0) != has_log(1)) << "the file's home has a folder";
  for (int index = 0; index < 2; ++index) {
    if (!has_log(index)) continue;
    const auto status = std::filesystem::status(folder_ + "/logs/server." + std::to_string(index));
    EXPECT_EQ(status.permissions(), std::filesystem::perms::owner_all);
  }
  close(*client);
}

/// It has nothing by which it would know of the file, and is asked to attach it as soon as it listens.
TEST_F(Kept, ItMayDieBeforeItAttachesAFileThatItHolds) {
  constexpr int kFiles = 12;
  for (int index = 0; index < 2; ++index) start_kept("replicated", index, 2);
  for (int i = 0; i < kFiles; ++i) {
    const auto client = connect();
    const auto token = static_cast<FileToken>(100 + i);
    const auto path = file(std::to_string(i) + ".nc");
    const auto created = client->create({token, path, NC_CLOBBER, {}, {}, 1}, program_file(path).get());
    ASSERT_TRUE(created.ok() && *created == NC_NOERR);
    restart(i % 2);
    (void)daemons_[static_cast<std::size_t>(i % 2)]->url();
    std::this_thread::sleep_for(std::chrono::milliseconds(i));  // it is found to be back at any moment
    EndDefArgs args;
    args.file = token, args.definitions = {dim("x", kX), var("v0", NC_DOUBLE, {0})};
    const auto ended = client->enddef(args, true);
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    EXPECT_EQ(ended->nc_error, NC_NOERR);
    const auto closed = client->close(token, 0, Closing::kDurable, Order(2));
    EXPECT_TRUE(closed.ok() && *closed == NC_NOERR);
  }
}

TEST_F(Kept, ItMayDieThoughAnotherFileIsNotDefinedYet) {
  memory_ = "8M";
  start_kept("replicated", 0, 2);
  start_kept("replicated", 1, 2);
  const auto client = connect();
  const auto undefined = file("b.nc");
  constexpr FileToken kOther = 78;
  const auto created =
      client->create({kOther, undefined, NC_CLOBBER | NC_64BIT_DATA, {}, {}, 1}, program_file(undefined).get());
  ASSERT_TRUE(created.ok() && *created == NC_NOERR);
  ASSERT_TRUE(client->define({kOther, {dim("z", kZ), dim("y", kY)}}));
  create(*client, file("a.nc"), 6);
  for (int v = 0; v < 6; ++v) {
    EXPECT_TRUE(put_pieces(*client, v, 8));
    ASSERT_NO_FATAL_FAILURE(await_kept(*client));
    if (v % 3 == 2) restart(v / 3);
  }
  EndDefArgs args;
  args.file = kOther, args.definitions = {var("v0", NC_DOUBLE, {0, 1})};
  const auto ended = client->enddef(args, true);
  ASSERT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
  const auto closed = client->close(kOther, 0, Closing::kDurable, Order(2));
  EXPECT_TRUE(closed.ok() && *closed == NC_NOERR);
  close(*client);
  expect_whole(6);
}

/// Killed at any moment while a program writes; what it writes is the same in the end.
TEST_F(Kept, ItMayDieAtAnyMoment) {
  start_kept("logged");
  constexpr int kVariables = 6, kMostKills = 8;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed());
  const auto client = connect();
  std::atomic<bool> is_over = false;
  std::thread killer([&] {
    for (int kills = 0; kills < kMostKills && !is_over; ++kills) {
      ::usleep(100000 + random() % 400000);
      if (!is_over) restart();
      (void)daemons_.front()->url();  // it listens
    }
  });
  create(*client, file("a.nc"), kVariables);
  for (int round = 0; round < 3; ++round)
    for (int v = 0; v < kVariables; ++v) EXPECT_TRUE(put_pieces(*client, v, 4));
  close(*client);
  is_over = true;
  killer.join();
  expect_whole(kVariables);
}

}  // namespace
}  // namespace staging::testing
