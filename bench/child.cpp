// SPDX-License-Identifier: BSD-3-Clause
#include "child.hpp"

#include "machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using SteadyClock = std::chrono::steady_clock;
constexpr int kPartnerSilence_ms = 30000;
constexpr auto kFirstGlance = std::chrono::microseconds(50), kLongestGlance = std::chrono::microseconds(2000);
constexpr int kNotStarted = 127;

/// The child ends with its parent, even if the parent is killed.
void die_with(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) _exit(kNotStarted);
}

bool ended_within(pid_t pid, std::chrono::milliseconds limit, int &status, rusage *used = nullptr) {
  auto glance = kFirstGlance;  // whole runs of short programs are measured
  for (auto until = SteadyClock::now() + limit;; glance = std::min(2 * glance, kLongestGlance)) {
    if (wait4(pid, &status, WNOHANG, used) == pid) return true;
    if (SteadyClock::now() >= until) return false;
    std::this_thread::sleep_for(glance);
  }
}

/// Asks, then forces. Returns the wait status.
int end_child(pid_t pid) {
  int status = 0;
  kill(pid, SIGTERM);
  if (ended_within(pid, std::chrono::seconds(5), status)) return status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return status;
}

/// Reads until the pipe is closed. False if that does not happen before `until`.
bool drain_pipe(int descriptor, SteadyClock::time_point until, ProgramResult &result) {
  char buffer[4096];
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    pollfd ready{descriptor, POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(std::min<long>(left, INT_MAX))) == 0) return false;
    auto n = ::read(descriptor, buffer, sizeof buffer);
    if (n == 0 || (n < 0 && errno != EINTR)) return true;
    if (n <= 0) continue;
    result.output.append(buffer, static_cast<std::size_t>(n));
    result.last_output = std::chrono::system_clock::now();
  }
}

double cpu_seconds(const rusage &used) {
  const auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by {}", strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

std::string tail_of(FILE *file) {
  char buffer[1500];
  fseek(file, 0, SEEK_END);
  fseek(file, std::max(0L, ftell(file) - static_cast<long>(sizeof buffer)), SEEK_SET);
  return std::string(buffer, fread(buffer, 1, sizeof buffer, file));
}

}  // namespace

void exec_program(const std::vector<std::string> &command, const std::vector<std::string> &environment, int out,
                  int err) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto &setting : environment) putenv(const_cast<char *>(setting.c_str()));
  std::vector<char *> argv;
  for (const auto &word : command) argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(kNotStarted);
}

nessie::Result<ProgramResult> run_program(const std::vector<std::string> &command, std::chrono::seconds limit,
                                          const std::vector<std::string> &environment) {
  int out[2];
  std::unique_ptr<FILE, int (*)(FILE *)> errors(tmpfile(), fclose);
  if (!errors || pipe(out) != 0) return Error{Code::kIo, "no pipe or temporary file for a child process", {}, errno};
  auto began = SteadyClock::now();
  auto parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    die_with(parent, SIGTERM);
    close(out[0]);
    exec_program(command, environment, out[1], fileno(errors.get()));
  }
  close(out[1]);
  if (pid < 0) return close(out[0]), Error{Code::kIo, "cannot fork", {}, errno};

  ProgramResult result;
  auto until = began + limit;
  bool closed = drain_pipe(out[0], until, result);
  close(out[0]);
  int status = 0;
  rusage used{};
  bool ended = closed && ended_within(pid, std::chrono::milliseconds(10000), status, &used);
  if (!ended) status = end_child(pid);
  result.cpu_s = cpu_seconds(used);
  result.wall_s = std::chrono::duration<double>(SteadyClock::now() - began).count();

  auto line = fmt::format("`{}`", fmt::join(command, " "));
  if (!ended) return Error{Code::kTimedOut, fmt::format("{} did not end within {} s", line, limit.count())};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return result;
  auto code = WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted ? Code::kNotFound : Code::kIo;
  return Error{code, fmt::format("{} {}:\n{}{}", line, how_it_ended(status), tail_of(errors.get()), result.output)};
}

bool on_path(const char *program) {
  const char *path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

std::vector<std::string> mpiexec(int processes, std::vector<std::string> program, std::vector<std::string> options) {
  std::vector<std::string> command{"mpiexec", "--oversubscribe", "-n", std::to_string(processes)};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> mpi_options(int processes, bool over_tcp) {
  const bool crowded = processes > static_cast<int>(usable_cores().size());
  std::vector<std::string> options{"--bind-to", "none", "--mca", "mpi_yield_when_idle", crowded ? "1" : "0"};
  options.insert(options.end(), {"--mca", "pml", "ob1"});
  if (over_tcp)
    options.insert(options.end(), {"--mca", "btl", "self,tcp", "--mca", "osc", "pt2pt"});
  else  // by default messages from 4 KiB on pay for a rendezvous, and take twice as long
    options.insert(options.end(), {"--mca", "btl_vader_eager_limit", "32768"});
  return options;
}

std::string sibling(const std::string &name) {
  std::error_code error;
  auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  auto installed = folder / "../../bin" / name;
  return std::filesystem::exists(folder / name, error) ? folder / name : installed;
}

bool read_all(int descriptor, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    pollfd ready{descriptor, POLLIN, 0};
    if (poll(&ready, 1, kPartnerSilence_ms) <= 0) return false;
    auto n = ::read(descriptor, bytes.data(), bytes.size());
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto n = ::write(descriptor, bytes.data(), bytes.size());
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Partner::Partner(const std::function<int(int, int)> &body) {
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) return;
  auto parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    die_with(parent, SIGKILL);
    close(down[1]);
    close(up[0]);
    _exit(body(down[0], up[1]));
  }
  close(down[0]);
  close(up[1]);
  to_partner_ = down[1];
  from_partner_ = up[0];
}

Partner::~Partner() {
  if (to_partner_ >= 0) close(to_partner_);
  if (from_partner_ >= 0) close(from_partner_);
  int status = 0;
  if (pid_ > 0 && !ended_within(pid_, std::chrono::seconds(5), status)) end_child(pid_);
}

Partner::End Partner::wait(std::chrono::milliseconds limit) {
  int status = 0;
  if (pid_ < 0) return End::kBadly;
  pollfd ended{from_partner_, POLLIN, 0};
  poll(&ended, 1, static_cast<int>(limit.count()));
  if (!ended_within(pid_, std::chrono::milliseconds(ended.revents ? 1000 : 0), status)) return End::kNotYet;
  pid_ = -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? End::kWell : End::kBadly;
}

bool Partner::read(std::span<std::byte> bytes) { return from_partner_ >= 0 && read_all(from_partner_, bytes); }
bool Partner::write(std::span<const std::byte> bytes) { return to_partner_ >= 0 && write_all(to_partner_, bytes); }

}  // namespace bench
