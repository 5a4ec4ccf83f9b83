// SPDX-License-Identifier: BSD-3-Clause
// The board and the door, as programs that only open files see them.
#include <services/staging/server/board.hpp>
#include <services/staging/server/door.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace staging {
namespace {

constexpr int kWatchdogMs = 20000;

class BoardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "board." + std::to_string(::getpid());
    clean_up();
    auto made = Board::create(path_, "somewhere", std::chrono::milliseconds(300));
    ASSERT_TRUE(made.ok()) << made.error().message;
    board_ = std::move(*made);
    const nessie::Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    seen_ =
        static_cast<const nessie_board *>(::mmap(nullptr, sizeof(nessie_board), PROT_READ, MAP_SHARED, file.get(), 0));
    ASSERT_NE(seen_, MAP_FAILED);
  }
  void TearDown() override { clean_up(); }
  void clean_up() const {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + NESSIE_BOARD_COUNTS_SUFFIX);
  }
  bool shows(const FileIdentity &file) const {
    for (std::uint32_t i = 0; i < seen_->used; ++i)
      if (seen_->places[i].inode == file.inode && seen_->places[i].device == file.device) return true;
    return false;
  }
  /// A server's process does something with the board, and is killed.
  void die_with(const std::function<void(Board &)> &what) {
    const auto server = ::fork();
    if (server == 0) {
      what(*board_);
      ::_exit(0);
    }
    ASSERT_EQ(::waitpid(server, nullptr, 0), server);
  }
  template <class T> T *map_to_write(const std::string &path) const {
    const nessie::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    return static_cast<T *>(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  }
  const nessie_board_writes *writes_seen() const {
    return map_to_write<nessie_board_writes>(path_ + NESSIE_BOARD_COUNTS_SUFFIX);
  }

  std::string path_;
  std::unique_ptr<Board> board_;
  const nessie_board *seen_ = nullptr;
};

TEST_F(BoardTest, ShowsFilesAsLongAsTheyHaveAPlace) {
  EXPECT_EQ(seen_->magic, NESSIE_BOARD_MAGIC);
  EXPECT_STREQ(seen_->door, "somewhere");
  EXPECT_EQ(seen_->files, 0u);
  {
    const auto one = board_->enter({3, 7}), again = board_->enter({3, 7}), other = board_->enter({3, 8});
    EXPECT_EQ(seen_->files, 3u);
    EXPECT_TRUE(shows({3, 7}));
    EXPECT_TRUE(shows({3, 8}));
    EXPECT_FALSE(shows({4, 7}));
  }
  EXPECT_EQ(seen_->files, 0u);
  EXPECT_FALSE(shows({3, 7}));
}

TEST_F(BoardTest, SaysWhetherAnyFileOutlivesTheServer) {
  {
    const auto kept = board_->enter({3, 7}, true);
    auto moved = board_->enter({3, 8}, true);
    const auto other = std::move(moved), lost = board_->enter({3, 9});
    EXPECT_EQ(seen_->kept, 2u);
  }
  EXPECT_EQ(seen_->kept, 0u);
}

TEST_F(BoardTest, WhatADeadServerHadStays_UntilItIsKnownWhatIsKept) {
  die_with([](Board &board) {
    static std::vector<Board::Entry> entries;
    entries.push_back(board.enter({3, 7}, true));
    entries.push_back(board.enter({3, 8}));
  });
  const auto counted = writes_seen()->counts[5];
  auto made = Board::take_over(path_, "elsewhere", std::chrono::seconds(30));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_STREQ(seen_->door, "elsewhere");
  EXPECT_EQ(seen_->files, 2u);
  EXPECT_EQ(seen_->kept, 1u);
  EXPECT_EQ(writes_seen()->counts[5], counted + 1) << "what was read may have been lost";
  {
    const auto again = (*made)->enter({3, 7}, true);
    (*made)->forget_predecessor();
    EXPECT_TRUE(shows({3, 7}));
    EXPECT_FALSE(shows({3, 8}));
    EXPECT_EQ(seen_->files, 1u);
    EXPECT_EQ(seen_->kept, 1u);
  }
  EXPECT_EQ(seen_->files, 0u);
  EXPECT_EQ(seen_->kept, 0u);
}

TEST_F(BoardTest, AServerThatDiedBetweenTwoStoresLeavesNothingThatStays) {
  die_with([this](Board &) {
    auto *board = map_to_write<nessie_board>(path_);
    board->places[2] = {3, 7};
    board->used = 1, board->files = 5, board->kept = 4, board->overflow = 1;
  });
  auto made = Board::take_over(path_, "elsewhere", std::chrono::seconds(30));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(seen_->files, 2u);
  EXPECT_EQ(seen_->kept, 2u);
  (*made)->forget_predecessor();
  EXPECT_EQ(seen_->files, 0u);
  EXPECT_EQ(seen_->kept, 0u);
  EXPECT_EQ(seen_->overflow, 0u);
}

TEST_F(BoardTest, WhereADeadServerHadNone_ItsSuccessorMakesOne) {
  clean_up();
  auto made = Board::take_over(path_, "elsewhere", std::chrono::seconds(30));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(map_to_write<nessie_board>(path_)->files, 0u);
}

TEST_F(BoardTest, TellsWhereItsDoorIs_AndWhenToGiveUp) {
  struct stat network {};
  ASSERT_EQ(::stat("/proc/self/ns/net", &network), 0);
  EXPECT_EQ(seen_->network, network.st_ino);
  EXPECT_EQ(seen_->patience_ms, 1000u);  // several signs of life at least
  EXPECT_EQ(seen_->alive, 0u);
  board_->show_life();
  EXPECT_EQ(seen_->alive, 1u);
}

TEST_F(BoardTest, HasItsRoomFromTheBeginning) {
  for (const auto &path : {path_, path_ + NESSIE_BOARD_COUNTS_SUFFIX}) {
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_GE(status.st_blocks * 512, status.st_size) << path;
  }
}

TEST_F(BoardTest, WhereThereIsNoRoom_NothingIsLeft) {
  const auto path = path_ + ".none";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{sizeof(nessie_board_writes) - 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto made = Board::create(path, "somewhere", std::chrono::seconds(30));
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().cause, EFBIG);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + NESSIE_BOARD_COUNTS_SUFFIX));
}

TEST_F(BoardTest, WithoutABoard_ThereAreNoCounts) {
  const auto path = path_ + ".there";
  std::ofstream(path) << "somebody else's";
  const auto made = Board::create(path, "somewhere", std::chrono::seconds(30));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().cause, EEXIST);
  EXPECT_FALSE(std::filesystem::exists(path + NESSIE_BOARD_COUNTS_SUFFIX));
  EXPECT_TRUE(std::filesystem::remove(path));
}

TEST_F(BoardTest, OneThatWasPreparedIsTaken_Once) {
  const auto path = path_ + ".prepared";
  ASSERT_TRUE(Board::prepare(path).ok());
  EXPECT_FALSE(Board::prepare(path).ok());
  const nessie::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto *seen =
      static_cast<const nessie_board *>(::mmap(nullptr, sizeof(nessie_board), PROT_READ, MAP_SHARED, file.get(), 0));
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(seen->magic, NESSIE_BOARD_MAGIC);
  EXPECT_EQ(seen->files, 0u);
  const auto taken = Board::create(path, "here", std::chrono::seconds(30));
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_STREQ(seen->door, "here");
  const auto entry = (*taken)->enter({7, 8});
  EXPECT_EQ(seen->files, 1u);
  EXPECT_EQ(Board::create(path, "there", std::chrono::seconds(30)).error().cause, EEXIST);
  EXPECT_STREQ(seen->door, "here");
  std::filesystem::remove(path);
  std::filesystem::remove(path + NESSIE_BOARD_COUNTS_SUFFIX);
}

TEST_F(BoardTest, CountsWhatIsWrittenToAFile) {
  const auto name = path_ + NESSIE_BOARD_COUNTS_SUFFIX;
  const nessie::Fd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  const auto *seen = static_cast<const nessie_board_writes *>(
      ::mmap(nullptr, sizeof(nessie_board_writes), PROT_READ, MAP_SHARED, file.get(), 0));
  ASSERT_NE(seen, MAP_FAILED);
  const auto one = nessie_board_count_of(3, 7), other = nessie_board_count_of(4, 7);
  ASSERT_NE(one, other);
  board_->note_write({3, 7});
  board_->note_write({3, 7});
  EXPECT_EQ(seen->counts[one], 2u);
  EXPECT_EQ(seen->counts[other], 0u);
  board_->note_native();
  EXPECT_EQ(seen_->natives, 1u);
}

TEST_F(BoardTest, PlacesAreUsedAgain) {
  auto first = board_->enter({1, 1});
  const auto second = board_->enter({1, 2});
  first = Board::Entry();
  const auto third = board_->enter({1, 3});
  EXPECT_EQ(seen_->used, 2u);
  EXPECT_TRUE(shows({1, 3}));
}

TEST_F(BoardTest, MoreFilesThanPlaces_AreSaidToBeAnyFile) {
  std::vector<Board::Entry> entries;
  for (std::uint64_t i = 0; i < NESSIE_BOARD_PLACES + 2; ++i) entries.push_back(board_->enter({1, i + 1}));
  EXPECT_EQ(seen_->overflow, 2u);
  EXPECT_EQ(seen_->files, NESSIE_BOARD_PLACES + 2u);
  entries.clear();
  EXPECT_EQ(seen_->overflow, 0u);
}

/// A server that settles when the test says so.
class DoorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(open().ok()); }
  nessie::Status open(nessie::TimeSource time = {}) {
    door_.reset();
    auto opened = Door::open(
        [this](const FileIdentity &identity, std::function<void()> done) {
          const std::lock_guard lock(mutex_);
          asked_.emplace_back(identity, std::move(done));
        },
        [this](const std::function<void()> &alive) {
          ++pulses_;
          if (works_) alive();
        },
        time);
    if (!opened.ok()) return opened.error();
    door_ = std::move(*opened);
    return {};
  }
  /// Of another user than the server's; it has to be root.
  nessie::Fd knock_as(uid_t user) const {
    nessie::Fd socket;
    std::thread([&] {  // of this thread only
      EXPECT_EQ(::syscall(SYS_setresuid, -1, user, -1), 0);
      socket = knock();
    })
        .join();
    return socket;
  }
  nessie::Fd knock() const { return connect(nessie::Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))); }
  nessie::Fd connect(nessie::Fd socket) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    door_->name().copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + door_->name().size());
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), size), 0);
    return socket;
  }
  /// What the door says next; nothing if it has closed.
  static std::optional<char> hear(const nessie::Fd &socket) {
    pollfd event{socket.get(), POLLIN, 0};
    char word = 0;
    if (::poll(&event, 1, kWatchdogMs) != 1 || ::recv(socket.get(), &word, 1, 0) != 1) return std::nullopt;
    return word;
  }
  static void ask(const nessie::Fd &socket, nessie_board_place file) {
    EXPECT_EQ(::send(socket.get(), &file, sizeof file, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof file));
  }
  /// The wish that came as number `n`.
  std::pair<FileIdentity, std::function<void()>> wish(std::size_t n) {
    for (int i = 0; i < kWatchdogMs; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (asked_.size() > n) return asked_[n];
      }
      ::poll(nullptr, 0, 1);
    }
    return {};
  }
  std::mutex mutex_;
  std::vector<std::pair<FileIdentity, std::function<void()>>> asked_;
  static bool is_sent_away(const nessie::Fd &socket) {
    pollfd event{socket.get(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1 && (event.revents & POLLHUP) != 0;
  }
  static bool has_come_true(const std::function<bool()> &condition) {
    for (int i = 0; i < kWatchdogMs && !condition(); ++i) ::poll(nullptr, 0, 1);
    return condition();
  }
  std::atomic<bool> works_{true};
  std::atomic<int> pulses_{0};
  std::unique_ptr<Door> door_;
};

/// A limit that a door's places follow from, until it goes.
class FewDescriptors {
 public:
  static constexpr int kLimit = 256, kPlaces = kLimit / 4;
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{kLimit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors &) = delete;

 private:
  rlimit before_{};
};

/// Takes all descriptors that this process may have, until it goes.
class NoDescriptors {
 public:
  NoDescriptors() {
    for (nessie::Fd one(::dup(0)); one; one = nessie::Fd(::dup(0))) taken_.push_back(std::move(one));
  }

 private:
  const FewDescriptors few_;
  std::vector<nessie::Fd> taken_;
};

TEST_F(DoorTest, WhoAsksIsToldWhenTheFileIsWhole) {
  const auto one = knock(), two = knock();
  ask(one, {5, 6});
  ask(two, {5, 7});
  wish(0), wish(1);
  for (const auto &[identity, done] : {wish(0), wish(1)})
    if (identity == FileIdentity{5, 6}) done();
  EXPECT_EQ(hear(one), NESSIE_DOOR_SETTLED);
  EXPECT_EQ(hear(one), std::nullopt);  // and has to go
  pollfd event{two.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&event, 1, 0), 0);
}

TEST_F(DoorTest, WhileSomebodyWaits_ItPulses_HoweverOftenOthersCome) {
  const auto one = knock();
  ask(one, {5, 6});
  EXPECT_TRUE(has_come_true([&] {
    ask(knock(), {9, 9});
    return pulses_ >= 3;
  }));
}

TEST_F(DoorTest, AServerThatDoesNotWorkIsNotAskedAgain_AndWhoSaysNothingHasToGo) {
  static std::atomic<nessie::Clock::duration> now;
  now = std::chrono::seconds(1);
  nessie::TimeSource time;
  time.now = [] { return nessie::Clock::time_point(now.load()); };
  ASSERT_TRUE(open(time).ok());
  works_ = false;
  const auto silent = knock(), one = knock();
  ask(one, {5, 6});
  wish(0);  // so that both are inside
  EXPECT_TRUE(has_come_true([&] { return pulses_ == 1; }));
  now = std::chrono::seconds(12);
  EXPECT_TRUE(has_come_true([&] { return is_sent_away(silent); }));
  EXPECT_EQ(pulses_, 1);
  EXPECT_FALSE(is_sent_away(one));
}

TEST_F(DoorTest, WithoutDescriptors_ItPulses_AndLetsOneVisitorInAfterTheOther) {
  const auto before = knock();
  ask(before, {5, 5});
  wish(0).second();
  EXPECT_EQ(hear(before), NESSIE_DOOR_SETTLED);
  std::array<nessie::Fd, 3> visitors;
  for (auto &visitor : visitors) visitor.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const NoDescriptors none;
  for (std::uint64_t i = 0; i < visitors.size(); ++i) {
    visitors[i] = connect(std::move(visitors[i]));
    ask(visitors[i], {6, i});
  }
  EXPECT_TRUE(has_come_true([&] { return pulses_ >= 3; }));
  for (std::uint64_t i = 0; i < visitors.size(); ++i) {
    const auto [identity, done] = wish(1 + i);
    EXPECT_EQ(identity, (FileIdentity{6, i}));
    done();
    EXPECT_EQ(hear(visitors[i]), NESSIE_DOOR_SETTLED);
  }
}

TEST_F(DoorTest, WhoWaitsForTheSameFileWaitsTogether_ForADrainThatBeganAfterHeCame) {
  const auto one = knock();
  ask(one, {5, 6});
  const auto first = wish(0).second;
  const auto two = knock(), three = knock(), other = knock();
  ask(two, {5, 6});
  ask(three, {5, 6});
  ask(other, {5, 7});
  EXPECT_EQ(wish(1).first, (FileIdentity{5, 7}));
  first();
  EXPECT_EQ(hear(one), NESSIE_DOOR_SETTLED);
  EXPECT_EQ(wish(2).first, (FileIdentity{5, 6}));
  wish(2).second();
  EXPECT_EQ(hear(two), NESSIE_DOOR_SETTLED);
  EXPECT_EQ(hear(three), NESSIE_DOOR_SETTLED);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(asked_.size(), 3u);
}

TEST_F(DoorTest, OtherUsersHaveHalfOfThePlaces_AndAQuarterEach) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs other users";
  const FewDescriptors few;
  ASSERT_TRUE(open().ok());
  constexpr auto kPlaces = FewDescriptors::kPlaces;
  std::vector<nessie::Fd> own, others;
  const auto others_inside = [&](std::size_t n) {
    ask(own.emplace_back(knock()), {5, n});
    wish(n);  // so that nobody waits any more who came before
    return std::ranges::count_if(others, [](const nessie::Fd &other) { return !is_sent_away(other); });
  };
  for (int i = 0; i < kPlaces / 2; ++i) others.push_back(knock_as(65534));
  EXPECT_EQ(others_inside(0), kPlaces / 4);
  for (const uid_t user : {65531, 65532, 65533})
    for (int i = 0; i < kPlaces / 8; ++i) others.push_back(knock_as(user));
  EXPECT_EQ(others_inside(1), kPlaces / 2);
  while (own.size() < kPlaces / 2 - 1u) own.push_back(knock());
  EXPECT_EQ(others_inside(2), kPlaces / 2);
  EXPECT_TRUE(std::ranges::none_of(own, is_sent_away));
}

TEST_F(DoorTest, MoreVisitorsThanPlacesWaitOutside) {
  const FewDescriptors few;
  ASSERT_TRUE(open().ok());
  const auto first = knock();
  ask(first, {5, 6});
  wish(0);
  std::vector<nessie::Fd> inside;
  while (inside.size() < FewDescriptors::kPlaces - 1u) inside.push_back(knock());
  const auto outside = knock();
  ask(outside, {5, 7});
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(asked_.size(), 1u);
  }
  wish(0).second();
  EXPECT_EQ(wish(1).first, (FileIdentity{5, 7}));
}

TEST_F(DoorTest, WithoutAThreadThereIsNoDoor) {
  pthread_attr_t before, absurd;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_attr_init(&absurd), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&absurd, std::size_t{1} << 47), 0);  // more than there are addresses
  ASSERT_EQ(::pthread_setattr_default_np(&absurd), 0);
  const auto opened = open();
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, nessie::Code::kIo);
}

TEST_F(DoorTest, WhoTalksNonsenseIsSentAway) {
  const auto short_of = knock(), long_of = knock(), twice = knock();
  EXPECT_EQ(::send(short_of.get(), "abc", 3, MSG_NOSIGNAL), 3);
  const std::string much(4096, 'x');
  EXPECT_EQ(::send(long_of.get(), much.data(), much.size(), MSG_NOSIGNAL), 4096);
  ask(twice, {1, 1});
  ask(twice, {1, 1});
  EXPECT_EQ(hear(short_of), std::nullopt);
  EXPECT_EQ(hear(long_of), std::nullopt);
  EXPECT_EQ(hear(twice), std::nullopt);
}

TEST_F(DoorTest, WhenItCloses_WhoWaitsIsFree_AndALateAnswerHarmsNobody) {
  const auto visitor = knock();
  ask(visitor, {1, 1});
  const auto late = wish(0).second;
  door_.reset();
  EXPECT_EQ(hear(visitor), std::nullopt);
  late();
}

}  // namespace
}  // namespace staging
