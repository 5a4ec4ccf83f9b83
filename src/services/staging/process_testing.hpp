// SPDX-License-Identifier: BSD-3-Clause
// For tests: servers that are processes.
#pragma once

#include <base/clock.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace staging::testing {

using nessie::Deadline;

inline constexpr auto kWatchdog = std::chrono::seconds(60);

/// Waits until a child ends or, with WUNTRACED, stops; its status, or -1.
inline int wait_for_change(pid_t pid, int which = WUNTRACED) {
  const auto deadline = Deadline::in(kWatchdog);
  int status = -1;
  while (::waitpid(pid, &status, WNOHANG | which) == 0)
    if (deadline.passed())
      return -1;
    else
      ::usleep(1000);
  return status;
}

/// A nessied of our own; killed and reaped when dropped.
class Daemon {
 public:
  Daemon(const std::string &folder, int index, int servers, std::vector<std::string> flags,
         std::function<void()> in_child = {}) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    url_file_ = folder + "/server." + std::to_string(index) + ".url";
    std::vector<std::string> words = {
        NESSIED, "--index", std::to_string(index), "--servers", std::to_string(servers), "--run-dir", folder};
    words.insert(words.end(), flags.begin(), flags.end());
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[0], 0);
      if (in_child) in_child();
      std::vector<char *> argv;
      for (auto &word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[0]);
    life_line_ = ends[1];
  }
  ~Daemon() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), wait_end();
    cut_life_line();
  }
  Daemon(const Daemon &) = delete;

  std::string url() const {
    const auto deadline = Deadline::in(kWatchdog);
    while (!std::filesystem::exists(url_file_) && !deadline.passed()) std::this_thread::yield();
    std::ifstream file(url_file_);
    std::string line;
    std::getline(file, line);
    return line;
  }
  void cut_life_line() {
    if (life_line_ >= 0) ::close(life_line_);
    life_line_ = -1;
  }
  /// The exit code; 128 + the signal. -1: it did not end.
  int wait_end() {
    const int status = wait_for_change(pid_, 0);
    if (status == -1) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Stopped, it takes no note of anything until go_on().
  void stop() {
    ::kill(pid_, SIGSTOP);
    EXPECT_TRUE(WIFSTOPPED(wait_for_change(pid_)));
  }
  void go_on() { ::kill(pid_, SIGCONT); }
  pid_t pid() const { return pid_; }

 private:
  std::string url_file_;
  pid_t pid_ = -1;
  int life_line_ = -1;
};

}  // namespace staging::testing
