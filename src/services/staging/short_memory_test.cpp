// SPDX-License-Identifier: BSD-3-Clause
// Servers with next to no memory, while processes are killed and stopped, and disks are full: nobody waits for ever,
// and what is not in the file is told.
#include <services/staging/process_testing.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace staging {
namespace {

using nessie::Code;
using testing::contents;
using testing::HalfMemory;
using testing::kVariableBytes;
using testing::kWatchdog;
using testing::kX;
using testing::kY;
using testing::kZ;
using testing::out_of_reach;
using testing::stop_then_go_on;
using testing::wait_for_change;

constexpr std::int64_t kLineElements = 1 << 20;
const VariableLayout kBox{0, 8, false, {kZ, kY, kX}}, kLine{0, 8, false, {kLineElements}};
constexpr const char *kOnePage = "4K";

Item all_of(const HalfMemory &memory) { return {&kBox, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, memory.bytes()}; }

class ShortMemory : public testing::StagingProcess {
 protected:
  /// A file with lines of doubles.
  void create_lines(Client &client, const std::string &path, int lines) {
    path_ = path;
    order_.emplace(client.servers());
    std::vector<Definition> definitions = {testing::dim("x", kLineElements)};
    for (int line = 0; line < lines; ++line)
      definitions.push_back(testing::var("line" + std::to_string(line), NC_DOUBLE, {0}));
    const auto defined = testing::create_file(client, kToken, path, definitions);
    last_line_begin_ = 0;
    for (const auto byte : std::span(defined.header).last(8))  // where CDF-5 says it
      last_line_begin_ = last_line_begin_ << 8 | std::to_integer<off_t>(byte);
  }
  static int put_run(Client &client, Order &order, Interval run, std::span<std::byte> bytes) {
    const Item item{&kLine, Piece{0, {run.begin}, {run.size()}, {}}, bytes};
    const auto written = client.write(kToken, 0, order, {&item, 1});
    order.know(order.end_call());
    return written.ok() ? *written : NC_EWRITE;
  }
  template <class State> static void await(const State &state) {
    const auto deadline = nessie::Deadline::in(kWatchdog);
    while (!state() && !deadline.passed()) ::usleep(1000);
    ASSERT_TRUE(state());
  }
  void expect_end(pid_t pid) {
    const int status = wait_for_change(pid, 0);
    EXPECT_TRUE(status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (status != -1) std::erase(programs_, pid);
  }
  void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    EXPECT_NE(wait_for_change(pid, 0), -1);
    std::erase(programs_, pid);
  }
  /// A process that cannot move data but by its own doing. Stops at once, and then does `work`; ends with 0 if that was
  /// fine.
  pid_t run_later(const std::function<bool(Client &)> &work, bool has_cma = false) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      if (!has_cma) testing::move_data_by_own_doing();
      auto client = connect();
      order_.emplace(client->servers());
      ::raise(SIGSTOP);
      const bool fine = work(*client) && client->finish_writes(kToken).ok();
      client.reset();
      ::_exit(fine ? 0 : 1);
    }
    programs_.push_back(pid);
    EXPECT_TRUE(WIFSTOPPED(wait_for_change(pid)));
    return pid;
  }
  pid_t run_to_put_all(int varid) {
    return run_later([this, varid](Client &client) {
      const auto put_all = put(client, varid);
      return put_all.ok() && *put_all == NC_NOERR;
    });
  }
  /// Every `step`th element of each row, beginning with `first`, one write for some planes.
  bool put_scattered(Client &client, int varid, std::int64_t first, std::int64_t step) {
    const VariableLayout layout{varid, 8, false, {kZ, kY, kX}};
    constexpr std::int64_t kPlanes = 4;
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<double>(i) + varid;
    for (std::int64_t z = 0; z < kZ; z += kPlanes) {
      PieceList pieces;
      std::vector<double> values;
      for (auto i = z * kY * kX + first; i < (z + kPlanes) * kY * kX; i += step) {
        pieces.append(Piece{varid, {i / kX / kY, i / kX % kY, i % kX}, {1, 1, 1}, {}});
        values.push_back(data_[static_cast<std::size_t>(i)]);
      }
      const Item item{&layout, pieces, std::as_writable_bytes(std::span(values))};
      const auto written = client.write(kToken, 0, *order_, {&item, 1});
      if (!written.ok() || *written != NC_NOERR) return false;
      order_->know(order_->end_call());
    }
    return true;
  }

  /// One that puts a file's variable out of memory of which half cannot be read.
  pid_t run_until_stuck_in_a_put() {
    return run_until_stuck([&](Client &client) {
      create(client, folder_ + "/stuck.nc", 1, kZ, 1);
      const HalfMemory memory(kVariableBytes, 0);
      const auto item = all_of(memory);
      (void)client.write(1, 0, *order_, {&item, 1});
    });
  }

  off_t last_line_begin_ = 0;
};

TEST_F(ShortMemory, OfAProcessThatIsKilledIsForThoseWhoWait) {
  start({"--memory", kOnePage});
  const auto stuck = run_until_stuck_in_a_put();
  const auto writer = run_to_put_all(0);
  auto owner = connect();
  create(*owner, folder_ + "/free.nc", 1);
  ::kill(writer, SIGCONT);
  await([&] { return owner->report(0)->writes == 2; });
  end(stuck);
  expect_end(writer);
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
}

/// The page that one process fills leaves, since another one waits for memory, and is all the memory that there is.
TEST_F(ShortMemory, OfAPageThatLeavesWhileItIsFilledIsNotWaitedForByWhoFillsIt) {
  constexpr std::int64_t kHalfPage = 200;
  start({"--memory", kOnePage});
  const auto filler = run_later([&](Client &client) {
    std::signal(SIGSEGV, stop_then_go_on);
    const HalfMemory memory((kLineElements - kHalfPage) * 8, 0);
    out_of_reach = memory.bytes();
    return put_run(client, *order_, {kHalfPage, kLineElements}, memory.bytes()) == NC_NOERR;
  });
  const auto waiter = run_later([&](Client &client) {
    const VariableLayout layout{1, 8, false, {kLineElements}};
    const Item item{&layout, Piece{1, {0}, {kLineElements}, {}}, std::as_writable_bytes(std::span(data_))};
    const auto written = client.write(kToken, 0, *order_, {&item, 1});
    return written.ok() && *written == NC_NOERR;
  });
  auto owner = connect();
  create_lines(*owner, folder_ + "/lines.nc", 2);
  std::vector<double> half(kHalfPage, 1.0);
  ASSERT_EQ(put_run(*owner, *order_, {0, kHalfPage}, std::as_writable_bytes(std::span(half))), NC_NOERR);
  ASSERT_EQ(*owner->finish_writes(kToken), NC_NOERR);
  ::kill(filler, SIGCONT);
  ASSERT_TRUE(WIFSTOPPED(wait_for_change(filler)));
  ::kill(waiter, SIGCONT);
  await([&] { return owner->report(0)->bytes_drained == kHalfPage * 8; });
  ::kill(filler, SIGCONT);
  expect_end(filler);
  expect_end(waiter);
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  const auto bytes = contents(path_);
  const auto line = std::string_view(bytes).substr(bytes.size() - 2 * kLineElements * 8);
  EXPECT_EQ(line.substr(0, 8), std::string_view("\x3f\xf0\0\0\0\0\0\0", 8));
  EXPECT_EQ(line.find_first_not_of('\0', kHalfPage * 8), std::string_view::npos);
}

TEST_F(ShortMemory, OfOnePageIsEnoughForAll) {
  constexpr int kClients = 4;
  for (const auto *memory : {kOnePage, "64K", "320K"}) {
    start({"--memory", memory});
    std::vector<pid_t> programs;
    for (int rank = 0; rank < kClients; ++rank)
      programs.push_back(run_later(
          [this, rank](Client &client) {
            if (rank % 2 == 0) return put_pieces(client, rank, 8) && put_pieces(client, rank, 64);
            return put_pieces(client, rank, 64) && put_scattered(client, rank, 3, 16);
          },
          rank >= 2));
    auto owner = connect();
    create(*owner, folder_ + "/many.nc", kClients);
    for (const auto program : programs) ::kill(program, SIGCONT);
    for (const auto program : programs) expect_end(program);
    EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
    for (int v = 0; v < kClients; ++v) EXPECT_TRUE(in_file(v, kClients - 1 - v)) << v << " with " << memory;
    owner.reset();
    daemons_.clear();
    std::filesystem::remove(folder_ + "/server.0.url");
  }
}

TEST_F(ShortMemory, AProcessThatIsKilledWhileItWaitsForItLeavesItToOthers) {
  start({"--memory", kOnePage});
  const auto holder = run_until_stuck_in_a_put();
  const auto killed = run_to_put_all(0), writer = run_to_put_all(1);
  auto owner = connect();
  create(*owner, folder_ + "/free.nc", 2);
  ::kill(killed, SIGCONT);
  await([&] { return owner->report(0)->writes == 2; });
  ::kill(writer, SIGCONT);
  await([&] { return owner->report(0)->writes == 3; });
  end(killed);
  end(holder);
  expect_end(writer);
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  EXPECT_TRUE(in_file(1, 0));
}

TEST_F(ShortMemory, WhoWaitsForItIsToldOfAFullDisk) {
  constexpr int kClients = 3;
  const auto disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=6m") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  mounted_ = disk;
  for (const auto *mode : {"caching", "direct"}) {
    start({"--memory", "1M", "--mode", mode}, 0, 1, testing::have_no_patience);
    std::vector<pid_t> programs;
    for (int rank = 0; rank < kClients; ++rank)
      programs.push_back(run_later([this, rank](Client &client) {
        const bool is_fine = put_pieces(client, rank, 8) && put_pieces(client, rank, 64);
        const auto later = put(client, rank);
        return !is_fine || !later.ok() || *later != NC_NOERR || client.mode() != Mode::kDirect;
      }));
    auto owner = connect();
    create(*owner, disk + "/full.nc", kClients);
    for (const auto program : programs) ::kill(program, SIGCONT);
    for (const auto program : programs) expect_end(program);
    (void)owner->close(kToken, 0, Closing::kDurable, *order_);
    const auto report = *owner->report(0);
    EXPECT_EQ(report.failures.size(), std::string(mode) == "caching" ? 1u : 0u) << mode;
    EXPECT_EQ(report.bytes_pending, 0u);
    owner.reset();
    daemons_.clear();
    std::filesystem::remove(folder_ + "/server.0.url");
    std::filesystem::remove(path_);
  }
}

// --- pages with holes -------------------------------------------------------------------------------------------------

/// The first number of "v1[37,0:127,…]".
int first_plane(const std::string &range) { return std::atoi(range.substr(range.find('[') + 1).c_str()); }

TEST_F(ShortMemory, OfPagesWithHolesOnlyThoseAreReportedThatAreLost) {
  constexpr std::int64_t kPlaneBytes = kY * kX * 8, kPagePlanes = (1 << 20) / kPlaneBytes;
  start({}, 0, 1, [] {
    const rlimit limit{12 << 20 | 64 << 10, 12 << 20 | 64 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  auto client = connect();
  create(*client, folder_ + "/limited.nc", 2);
  ASSERT_TRUE(put_scattered(*client, 0, 5, 16));
  ASSERT_TRUE(put_scattered(*client, 1, 5, 16));
  const auto closed = client->close(kToken, 0, Closing::kDurable, *order_);
  ASSERT_TRUE(closed.ok());
  EXPECT_EQ(*closed, NC_EWRITE);
  const auto report = *client->report(0);
  ASSERT_EQ(report.failures.size(), 1u);
  const auto &failure = report.failures.front();
  EXPECT_NE(failure.message.find("File too large"), std::string::npos) << failure.message;
  ASSERT_FALSE(failure.missing.empty());
  for (const auto &range : failure.missing) EXPECT_EQ(range.substr(0, 2), "v1") << range;
  EXPECT_EQ(first_plane(failure.missing.front()), kZ / 2) << failure.missing.front();
  EXPECT_GE(failure.bytes_in_file, (kZ + kZ / 2) * kPlaneBytes / 16);
  EXPECT_LE(failure.bytes_in_file, (kZ + kZ / 2 + kPagePlanes) * kPlaneBytes / 16);
}

/// There is room for what is written, and none for what lies between.
TEST_F(ShortMemory, OnAFullDiskHolesThatHaveNoRoomStayHoles) {
  constexpr std::int64_t kBlock = 512, kRunsInBlock = 3;  // elements of 4 KiB: every second one has room
  const auto disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  mounted_ = disk;
  start();
  auto client = connect();
  create_lines(*client, disk + "/holes.nc", 1);
  const auto begin = last_line_begin_;
  const nessie::Fd file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  const char some = 1;
  std::vector<double> values;
  PieceList pieces;
  for (std::int64_t block = 1; block + 1 < kLineElements / kBlock; block += 2) {
    ASSERT_EQ(::pwrite(file.get(), &some, 1, begin + block * kBlock * 8), 1);
    for (std::int64_t run = 0; run < kRunsInBlock; ++run) {
      pieces.append(Piece{0, {block * kBlock + run * 40}, {1}, {}});
      values.push_back(static_cast<double>(values.size()));
    }
  }
  std::ofstream(disk + "/rest") << std::string(8 << 20, 'x');
  const Item item{&kLine, pieces, std::as_writable_bytes(std::span(values))};
  ASSERT_EQ(*client->write(kToken, 0, *order_, {&item, 1}), NC_NOERR);
  order_->know(order_->end_call());
  EXPECT_EQ(*client->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  const auto bytes = contents(path_);
  PieceReader reader(pieces);
  Piece piece;
  for (std::size_t i = 0; reader.next(piece); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + begin + piece.start[0] * 8, 8);
    word = __builtin_bswap64(word);
    double value = 0;
    std::memcpy(&value, &word, 8);
    ASSERT_EQ(value, values[i]) << piece.start[0];
  }
}

// --- readers ----------------------------------------------------------------------------------------------------------

TEST_F(ShortMemory, ReadersThatAreKilledInTheMiddleGiveItBack) {
  start({"--memory", "64K"});
  auto fill = [this](Client &client) {
    create(client, folder_ + "/read.nc", 1);
    (void)put(client, 0);
    (void)client.sync(kToken, 0);
  };
  const auto stuck = run_until_stuck([&](Client &client) {
    fill(client);
    const HalfMemory memory(kVariableBytes, kVariableBytes / 2);
    std::vector<Item> items;
    for (std::int64_t z = 0; z < kZ; ++z)
      items.push_back({&kBox, Piece{0, {z, 0, 0}, {1, kY, kX}, {}},
                       memory.bytes().subspan(static_cast<std::size_t>(z * kY * kX * 8), kY * kX * 8)});
    order_->is_collective = true;
    (void)client.read(kToken, 0, *order_, items);
  });
  auto other = connect();
  path_ = folder_ + "/read.nc";
  order_.emplace(1);
  const auto expect_right = [&] {
    std::vector<double> got(data_.size());
    const Item item{&kBox, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(got))};
    order_->is_collective = true;
    const auto read = other->read(kToken, 0, *order_, {&item, 1});
    ASSERT_TRUE(read.ok() && *read == NC_NOERR);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<double>(i));
  };
  expect_right();
  end(stuck);
  await([&] { return other->report(0)->drained.size() == 1; });
  create(*other, folder_ + "/later.nc", 1, kZ, kToken + 1);
  const auto item = Item{&kBox, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
  EXPECT_EQ(*other->write(kToken + 1, 0, *order_, {&item, 1}), NC_NOERR);
  EXPECT_EQ(*other->close(kToken + 1, 0, Closing::kDurable, *order_), NC_NOERR);
}

TEST_F(ShortMemory, WhoIsStoppedWhileHisDataMoveLeavesSomeToOthers) {
  start({"--memory", "4M"});
  run_until_stuck([&](Client &client) {
    create(client, folder_ + "/read.nc", 1, kZ, 1);
    const HalfMemory memory(kVariableBytes, 0);
    std::vector<Item> items;
    for (std::int64_t z = 0; z < kZ; ++z)
      items.push_back({&kBox, Piece{0, {z, 0, 0}, {1, kY, kX}, {}},
                       memory.bytes().subspan(static_cast<std::size_t>(z * kY * kX * 8), kY * kX * 8)});
    (void)client.read(1, 0, *order_, items);
  });
  run_until_stuck([&](Client &client) {
    constexpr int kVariables = 20;
    create(client, folder_ + "/written.nc", kVariables, kZ, 2);
    const HalfMemory memory(kVariableBytes, 0);
    std::vector<VariableLayout> layouts(kVariables, kBox);
    std::vector<Item> items;
    for (int varid = 0; varid < kVariables; ++varid) {
      auto &layout = layouts[static_cast<std::size_t>(varid)];
      layout.varid = varid;
      items.push_back({&layout, Piece{varid, {0, 0, 0}, {kZ, kY, kX}, {}}, memory.bytes()});
    }
    (void)client.write(2, 0, *order_, items);
  });
  const auto writer = run_to_put_all(0);
  auto owner = connect();
  create(*owner, folder_ + "/free.nc", 1);
  ::kill(writer, SIGCONT);
  expect_end(writer);
  EXPECT_EQ(*owner->close(kToken, 0, Closing::kDurable, *order_), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
}

TEST_F(ShortMemory, AServerThatIsKilledInTheMiddleOfAReadIsAnErrorOfAllItsReaders) {
  constexpr int kReaders = 3;
  auto &daemon = start({"--memory", "1M"});
  std::vector<pid_t> readers;
  for (int i = 0; i < kReaders; ++i)
    readers.push_back(run_later([this](Client &client) -> bool {
      const Item item{&kBox, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
      order_->is_collective = true;
      for (;;)
        if (const auto read = client.read(kToken, 0, *order_, {&item, 1}); !read.ok())
          ::_exit(read.code() == Code::kPeerLost ? 0 : 2);
    }));
  auto owner = connect();
  create(*owner, folder_ + "/read.nc", 1);
  ASSERT_EQ(*put(*owner, 0), NC_NOERR);
  ASSERT_EQ(*owner->sync(kToken, 0), NC_NOERR);
  for (const auto reader : readers) ::kill(reader, SIGCONT);
  await([&] { return owner->report(0)->bytes_pushed > kVariableBytes; });
  ::kill(daemon.pid(), SIGKILL);
  EXPECT_EQ(daemon.wait_end(), 128 + SIGKILL);
  for (const auto reader : readers) expect_end(reader);
}

}  // namespace
}  // namespace staging
