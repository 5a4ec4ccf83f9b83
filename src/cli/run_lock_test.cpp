// SPDX-License-Identifier: BSD-3-Clause
#include "run_lock.hpp"

#include "abandoned.hpp"
#include "run_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

namespace nessie::cli {
namespace {

namespace fs = std::filesystem;

/// Has a folder in which runs make theirs, and where they are looked for first.
class RunLock : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = RunDirectory::make_in("/tmp");
    ASSERT_TRUE(folder);
    base_.emplace(std::move(*folder));
    ::setenv("XDG_RUNTIME_DIR", base_->path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  /// The folder of a process that was killed.
  std::string abandon() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    if (const pid_t child = ::fork(); child == 0) {
      const auto folder = RunDirectory::make_in(base_->path());
      (void)!::write(ends[1], folder->path().data(), folder->path().size());
      ::_exit(0);
    } else {
      ::waitpid(child, nullptr, 0);
    }
    std::string path(256, '\0');
    path.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], path.data(), path.size()), 0)));
    for (const int end : ends) ::close(end);
    return path;
  }
  static bool is_found(const std::string &path) {
    const auto found = find_abandoned_folders();
    return std::ranges::any_of(found, [&](const auto &folder) { return folder.path == path; });
  }

  std::optional<RunDirectory> base_;
};

TEST_F(RunLock, OfALivingRun_IsNotToBeHad) {
  const auto folder = RunDirectory::make_in(base_->path());
  ASSERT_TRUE(folder);
  EXPECT_FALSE(lock_abandoned_run_folder(folder->path()));
  EXPECT_FALSE(is_found(folder->path()));
}

TEST_F(RunLock, OfADeadRun_IsHadByOne) {
  const auto path = abandon();
  ASSERT_TRUE(fs::exists(path));
  EXPECT_TRUE(is_found(path));
  const auto lock = lock_abandoned_run_folder(path);
  EXPECT_TRUE(lock);
  EXPECT_FALSE(lock_abandoned_run_folder(path));
}

TEST_F(RunLock, IsNotNeededOfARunThatDiedBeforeItHadOne) {
  const auto path = base_->file("nessie-abc123");
  fs::create_directory(path);
  EXPECT_TRUE(is_found(path));
  std::ofstream(path + "/something") << "";
  EXPECT_FALSE(is_found(path));
}

TEST_F(RunLock, IsSharedByAChildThatLivesOn) {
  const auto path = abandon();
  std::optional<Fd> lock(lock_abandoned_run_folder(path));
  ASSERT_TRUE(*lock);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char word = 0;
    ::close(ends[1]);
    (void)!::read(ends[0], &word, 1);
    ::_exit(0);
  }
  lock.reset();
  EXPECT_FALSE(lock_abandoned_run_folder(path));
  for (const int end : ends) ::close(end);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock_abandoned_run_folder(path));
}

TEST_F(RunLock, IsThereOnlyInAFolderThatARunMade) {
  const auto named_alike = base_->file("nessie-abc123"), another = base_->file("nessie-1000");
  for (const auto &path : {named_alike, another}) fs::create_directory(path);
  std::ofstream(another + "/run.lock") << "";
  EXPECT_FALSE(lock_abandoned_run_folder(named_alike));
  EXPECT_FALSE(lock_abandoned_run_folder(another));
  EXPECT_TRUE(fs::exists(another));
}

TEST_F(RunLock, OfAJobOfSeveralPrograms_IsItsFolderItself) {
  const auto path = base_->file("nessie-split-job7-12ab");
  EXPECT_FALSE(lock_abandoned_folder(path, kSplitFolderPrefix));
  fs::create_directory(path);
  {
    const Fd program(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(program.get(), LOCK_SH), 0);
    EXPECT_FALSE(lock_abandoned_folder(path, kSplitFolderPrefix));
  }
  EXPECT_TRUE(lock_abandoned_folder(path, kSplitFolderPrefix));
  const auto another = base_->file("nessie-abc123");
  fs::create_directory(another);
  EXPECT_FALSE(lock_abandoned_folder(another, kSplitFolderPrefix));
}

TEST_F(RunLock, IsNotFollowedThroughALink) {
  const auto path = abandon(), link = base_->file("nessie-linked");
  fs::create_directory_symlink(path, link);
  EXPECT_TRUE(is_run_folder_name("nessie-linked"));
  EXPECT_FALSE(lock_abandoned_run_folder(link));
}

TEST_F(RunLock, OfAFolderThatAProcessStillNames_SaysWhich) {
  const auto path = abandon();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::execl("/bin/sh", "sh", "-c", "read word; exit 0", path.c_str(), nullptr);
    ::_exit(127);
  }
  auto found = find_abandoned_folders();
  std::erase_if(found, [&](const auto &each) { return each.path != path; });
  ASSERT_EQ(found.size(), 1u);
  const auto folder = found.begin();
  while (folder->users.empty()) find_users(found);  // it may not have become sh yet
  EXPECT_EQ(folder->users.front().pid, child);
  EXPECT_FALSE(folder->users.front().is_server);
  EXPECT_TRUE(end_servers(found).empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace nessie::cli
