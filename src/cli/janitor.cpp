// SPDX-License-Identifier: BSD-3-Clause
#include "janitor.hpp"

#include "process.hpp"
#include "run_lock.hpp"

#include <base/clock.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace nessie::cli {

namespace {

using std::chrono::milliseconds;

constexpr char kAllIsWell = 'q';
// The program had a SIGTERM when `nessie run` died. Open MPI's mpiexec takes two seconds to end a job of several hosts,
// and leaves its files behind if another signal comes within five.
constexpr auto kTermAfter = milliseconds(6000);
constexpr auto kKillAfter = milliseconds(10000);

struct Leftovers {
  std::vector<pid_t> program, servers;
};

Leftovers find_leftovers(const std::string &credential) {
  Leftovers left;
  for (const pid_t pid : processes()) {
    if (!carries_credential(pid, credential)) continue;
    (command_name(pid) == "nessied" ? left.servers : left.program).push_back(pid);
  }
  return left;
}

void tidy_up(const std::vector<std::string> &folders, const std::string &log_folder, const std::string &credential) {
  const auto terminate = Deadline::in(kTermAfter), kill = Deadline::in(kKillAfter);
  bool terminated = false;
  while (true) {
    const auto left = find_leftovers(credential);
    if (left.program.empty() && left.servers.empty()) break;
    const bool first_time = terminate.passed() && !std::exchange(terminated, true);
    for (pid_t pid : left.program) {
      if (first_time) ::kill(pid, SIGTERM);
      if (kill.passed()) ::kill(pid, SIGKILL);
    }
    poll(nullptr, 0, 50);
  }
  for (const auto &folder : folders) (void)remove_run_folder(folder);
  (void)::rmdir(log_folder.c_str());
}

[[noreturn]] void keep_watch(int life_line, const std::vector<std::string> &folders, const std::string &log_folder,
                             const std::string &credential) {
  setsid();
  prctl(PR_SET_NAME, "nessie-janitor");
  let_go_of_streams();
  char word = 0;
  const auto got = read(life_line, &word, 1);
  if (got != 1 || word != kAllIsWell) tidy_up(folders, log_folder, credential);
  _exit(0);
}

}  // namespace

Janitor::Janitor(const std::vector<std::string> &folders, const std::string &log_folder,
                 const std::string &credential) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;  // it is a comfort only
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[1]);
    keep_watch(ends[0], folders, log_folder, credential);
  }
  close(ends[0]);
  life_line_ = ends[1];
}

Janitor::~Janitor() {
  if (life_line_ < 0) return;
  [[maybe_unused]] auto written = write(life_line_, &kAllIsWell, 1);
  close(life_line_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

}  // namespace nessie::cli
