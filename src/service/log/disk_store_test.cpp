// SPDX-License-Identifier: BSD-3-Clause
// Logs in files of a directory, on whatever file system the temporary one is.
#include <service/log/log.hpp>
#include <service/log/testing/log_test_base.hpp>

#include <base/file.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace nessie::service::testing {
namespace {

constexpr std::uint64_t kFileBytes = 256 << 10;
const LogOptions kSmallBlocks{.block_bytes = 64 << 10};

class DiskStoreTest : public LogTestBase {
 protected:
  DiskStoreTest() {
    char name[] = "/tmp/nessie-log-XXXXXX";
    directory_ = std::string(::mkdtemp(name)) + "/log";
  }
  ~DiskStoreTest() override { std::filesystem::remove_all(std::filesystem::path(directory_).parent_path()); }

  Result<std::unique_ptr<LogStore>> open_store(std::uint64_t most_bytes = 0, std::uint64_t segment_bytes = kFileBytes) {
    return open_disk_store(runtime(), {directory_, segment_bytes, most_bytes});
  }
  std::unique_ptr<Log> open(std::uint64_t most_bytes = 0) {
    auto store = open_store(most_bytes);
    if (!store.ok()) throw std::runtime_error(store.error().to_string());
    return open_log(*std::move(store), kSmallBlocks);
  }
  static Bytes data_of(std::size_t size, unsigned seed) {
    Bytes data(size);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7 + seed);
    return data;
  }
  std::vector<Kept> append_some(Log &log, unsigned count) {
    std::vector<Kept> appended;
    for (unsigned i = 0; i < count; ++i)
      appended.push_back(i % 3 == 0 ? append_bulk(log, 1, data_of(20, i), data_of(40000 + i, i))
                                    : append(log, 2, data_of(20, i), data_of(300 * (i % 100), i)));
    return appended;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(directory_)) names.insert(entry.path().filename());
    return names;
  }
  void flip(const std::string &file, std::streamoff at) const {
    std::fstream stream(directory_ + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const auto byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at).put(byte);
  }

  std::string directory_;
};

TEST_F(DiskStoreTest, WhatWasAppended_IsThereForWhoeverGoesOn) {
  run([&] {
    std::vector<Kept> appended;
    for (int round = 0; round < 3; ++round) {
      auto log = open();
      EXPECT_EQ(replay(*log).records, appended);
      for (auto &kept : append_some(*log, 60)) appended.push_back(std::move(kept));
      ASSERT_TRUE(log->await_synced(log->end()).ok());
      EXPECT_EQ(replay(*log).records, appended);
      for (const auto &kept : appended) {
        Bytes data(kept.data.size());
        EXPECT_TRUE(log->read(kept.at, data).ok());
        EXPECT_EQ(data, kept.data);
      }
    }
  });
}

TEST_F(DiskStoreTest, ManyFibers_ShareIt) {
  run([&] {
    auto log = open();
    run_many(64, [&](std::size_t i) {
      for (unsigned round = 0; round < 5; ++round) {
        const auto kept = append(*log, static_cast<std::uint16_t>(i), {}, data_of(4096, round));
        const auto status = round == 0 ? log->await_synced(kept.at.end) : log->await_written(kept.at.end);
        EXPECT_TRUE(status.ok()) << status.error().to_string();
      }
    });
    EXPECT_EQ(replay(*log).records.size(), 64u * 5);
  });
}

TEST_F(DiskStoreTest, TheDirectory_IsMadeForThisUserAlone_AndAnotherOneIsRefused) {
  run([&] {
    (void)open();
    struct stat status {};
    ASSERT_EQ(::stat(directory_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
    EXPECT_EQ(open_store().code(), Code::kRefused);
    ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(directory_.c_str(), 65534, 65534), 0);
      EXPECT_EQ(open_store().code(), Code::kRefused);
    }
    directory_ += "/is/not/there";
    const auto missing = open_store();
    EXPECT_EQ(missing.code(), Code::kIo);
    EXPECT_EQ(missing.error().cause, ENOENT);
    directory_ = std::filesystem::path(directory_).parent_path().parent_path().parent_path();
  });
}

TEST_F(DiskStoreTest, ALogThatAnotherOneHasOpen_IsRefused) {
  run([&] {
    auto log = open();
    EXPECT_EQ(open_store().code(), Code::kExists);
    log.reset();
    EXPECT_TRUE(open_store().ok());
  });
}

TEST_F(DiskStoreTest, Segments_AreUsedAgain_AndNoMoreThanNeededAreHeld) {
  run([&] {
    auto log = open();
    for (int round = 0; round < 20; ++round) {
      const auto appended = append_some(*log, 30);
      ASSERT_TRUE(log->await_synced(log->end()).ok());
      for (const auto &kept : appended) log->release(kept.at);
    }
    EXPECT_LE(log->held_bytes(), 6 * kFileBytes);
    EXPECT_LE(files().size(), 7u);
    const auto kept = append_some(*log, 40);
    EXPECT_EQ(replay(*log).records, kept) << "and nothing of what was there before";
    ASSERT_TRUE(log->flush().ok());
    log.reset();
    log = open();
    const auto found = replay(*log);
    EXPECT_TRUE(std::ranges::includes(
        found.records, kept, {}, [](const Kept &one) { return one.at.begin; },
        [](const Kept &one) { return one.at.begin; }));
    EXPECT_EQ(found.damage.size(), 0u);
  });
}

TEST_F(DiskStoreTest, BeyondTheMostThatItMayHave_ThereIsNoSpace) {
  run([&] {
    auto log = open(4 * kFileBytes);
    Status status;
    std::vector<Kept> kept;
    for (unsigned i = 0; i < 100 && status.ok(); ++i) {
      const auto data = data_of(50000, i);
      const std::span<const std::byte> part(data);
      const auto at = log->append(1, {}, {&part, 1});
      status = at.ok() ? log->await_written(at->end) : Status(at.error());
      if (status.ok()) kept.push_back({1, *at, {}, data});
    }
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.error().cause, ENOSPC);
    EXPECT_NE(status.error().message.find(directory_), std::string::npos);
    EXPECT_LE(log->held_bytes(), 4 * kFileBytes);
    EXPECT_GE(kept.size(), 15u);
    log.reset();
    log = open();
    EXPECT_EQ(replay(*log).records, kept);
  });
}

TEST_F(DiskStoreTest, AFlippedBit_IsNamedWithItsFile) {
  run([&] {
    auto log = open();
    const auto kept = append_some(*log, 60);
    ASSERT_TRUE(log->await_synced(log->end()).ok());
    (void)append(*log, 9, {}, {});
    ASSERT_TRUE(log->flush().ok());
    log.reset();
    flip("log.1", 84);
    log = open();
    const auto found = replay(*log);
    ASSERT_EQ(found.damage.size(), 1u);
    EXPECT_NE(found.damage[0].what.find(directory_ + "/log.1"), std::string::npos) << found.damage[0].what;
    EXPECT_LT(found.records.size(), kept.size() + 1);
    EXPECT_EQ(found.records.back().kind, 9);
  });
}

TEST_F(DiskStoreTest, AFlippedBitInTheLastBlock_IsNamed_UnlessThePowerFailedSince) {
  for (const bool power_failed : {false, true})
    run([&] {
      std::filesystem::remove_all(directory_);
      auto log = open();
      (void)append(*log, 1, {}, data_of(100, 1));
      ASSERT_TRUE(log->await_written(log->end()).ok());
      const auto last = append(*log, 2, {}, data_of(100, 2));
      ASSERT_TRUE(log->await_written(log->end()).ok());
      log.reset();
      flip("log.0", static_cast<std::streamoff>(last.at.begin) + 60);
      if (power_failed) flip("written", 0);
      log = open();
      const auto found = replay(*log);
      ASSERT_EQ(found.records.size(), 1u);
      EXPECT_EQ(found.records[0].kind, 1);
      EXPECT_EQ(found.damage.size(), power_failed ? 0u : 1u);
    });
}

TEST_F(DiskStoreTest, ALogThatIsShorterThanItWas_IsNamed) {
  run([&] {
    auto log = open();
    (void)append_some(*log, 30);
    ASSERT_TRUE(log->await_written(log->end()).ok());
    log.reset();
    for (const auto *name : {"log.1", "log.2", "log.3"}) std::filesystem::remove(directory_ + "/" + name);
    log = open();
    EXPECT_EQ(replay(*log).damage.size(), 1u);
  });
}

TEST_F(DiskStoreTest, SegmentsOfAnotherSize_KeepIt) {
  run([&] {
    auto log = open();
    const auto kept = append_some(*log, 30);
    ASSERT_TRUE(log->flush().ok());
    log.reset();
    auto store = open_store(0, 2 * kFileBytes);
    ASSERT_TRUE(store.ok());
    EXPECT_EQ((*store)->segment_bytes(), kFileBytes);
    log = open_log(*std::move(store), kSmallBlocks);
    EXPECT_EQ(replay(*log).records, kept);
  });
}

TEST_F(DiskStoreTest, WhatIsNoSegment_IsLeftAlone_AndWhatWasNotFinishedIsRemoved) {
  run([&] {
    (void)open();
    for (const auto *name : {"log.x", "log.", "notes", "spare.7"}) std::ofstream(directory_ + "/" + name) << "x";
    auto log = open();
    EXPECT_EQ(files(), (std::set<std::string>{"lock", "log.", "log.x", "notes", "written"}));
    std::ofstream(directory_ + "/log.9") << "x";
    log.reset();
    EXPECT_TRUE(open_store().ok() || open_store().code() == Code::kIo);
  });
}

/// Appends, says how far it got, and is killed.
TEST_F(DiskStoreTest, AfterKill9_EverythingThatWasAcknowledgedIsThere) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const auto child = ::fork();
  if (child == 0) {
    auto runtime = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
    runtime->spawn([&] {
      Budget budget;
      auto log = *Log::open(*runtime, budget, *open_disk_store(*runtime, {directory_, kFileBytes, 0}), kSmallBlocks);
      for (std::uint64_t i = 0;; ++i) {
        const auto kept = append(*log, 1, {}, data_of(i % 9000, static_cast<unsigned>(i)));
        if (log->await_written(kept.at.end).ok() && ::write(pipe_fds[1], &i, sizeof(i)) != sizeof(i)) ::_exit(1);
      }
    });
    runtime->run();
    ::_exit(0);
  }
  std::uint64_t last = 0;
  while (last < 500 && ::read(pipe_fds[0], &last, sizeof(last)) == sizeof(last)) {}
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe_fds[1]);
  while (::read(pipe_fds[0], &last, sizeof(last)) == sizeof(last)) {}
  ::close(pipe_fds[0]);
  run([&] {
    auto log = open();
    const auto found = replay(*log);
    EXPECT_EQ(found.damage.size(), 0u);
    ASSERT_GT(found.records.size(), last);
    for (std::size_t i = 0; i < found.records.size(); ++i)
      EXPECT_EQ(found.records[i].data, data_of(i % 9000, static_cast<unsigned>(i)));
  });
}

/// Each file with what is in it.
std::map<std::string, std::string> contents_of(const std::string &directory) {
  std::map<std::string, std::string> contents;
  for (const auto &entry : std::filesystem::directory_iterator(directory))
    contents[entry.path().filename()] = *read_file(entry.path());
  return contents;
}

TEST_F(DiskStoreTest, WhoOnlyLooks_FindsTheSame_AndChangesNothing_WhoeverHasIt) {
  run([&] {
    const auto read_only = [&] { return *open_disk_store(runtime(), {.directory = directory_, .is_read_only = true}); };
    std::vector<Kept> appended;
    {
      auto log = open();
      appended = append_some(*log, 60);
      EXPECT_TRUE(log->await_synced(log->end()).ok());
      EXPECT_EQ(look(read_only()).records, appended);
      for (auto &kept : append_some(*log, 60)) appended.push_back(std::move(kept));  // they say what was synced
      EXPECT_TRUE(log->flush().ok());
    }
    flip("log.1", 5000);
    const auto before = contents_of(directory_);
    const auto found = look(read_only());
    EXPECT_LT(found.records.size(), appended.size());
    EXPECT_EQ(found.damage.size(), 1u);
    EXPECT_EQ(contents_of(directory_), before);
    EXPECT_EQ(read_only()->write(0, {}).code(), Code::kIo);
    std::filesystem::remove_all(directory_);
    EXPECT_EQ(open_disk_store(runtime(), {.directory = directory_, .is_read_only = true}).code(), Code::kIo);
    EXPECT_FALSE(std::filesystem::exists(directory_));
  });
}

}  // namespace
}  // namespace nessie::service::testing
