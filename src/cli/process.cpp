// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <base/config.hpp>
#include <base/fd.hpp>
#include <base/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

namespace nessie::cli {

namespace {

[[noreturn]] void fail_in_child(int report_fd) {
  const int cause = errno;
  [[maybe_unused]] auto written = write(report_fd, &cause, sizeof cause);
  _exit(127);
}

void put_in_place(int fd, int stream, int report_fd) {
  if (fd >= 0 && dup2(fd, stream) < 0) fail_in_child(report_fd);
}

void keep_to(const std::vector<int> &cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores)
    if (core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &set);
  if (!cores.empty()) sched_setaffinity(0, sizeof set, &set);  // a wish
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void run_child(const SpawnOptions &options, char *const *argv, char *const *envp, pid_t parent,
                            const Signals *signals, int report_fd) {
  if (options.own_process_group) setpgid(0, 0);
  keep_to(options.cores);
  if (options.death_signal) {
    prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (getppid() != parent) _exit(127);
  }
  put_in_place(options.stdin_fd, STDIN_FILENO, report_fd);
  put_in_place(options.stdout_fd, STDOUT_FILENO, report_fd);
  put_in_place(options.stderr_fd, STDERR_FILENO, report_fd);
  if (options.stdout_to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail_in_child(report_fd);
  if (signals != nullptr) signals->restore_original();
  execvpe(argv[0], argv, envp);
  fail_in_child(report_fd);
}

Error exec_error(const std::string &program, int cause) {
  const Code code = cause == ENOENT ? Code::kNotFound : cause == EACCES ? Code::kRefused : Code::kIo;
  return Error{code, fmt::format("cannot run '{}': {}", program, std::strerror(cause)), Scope::kProcess, cause};
}

pid_t parent_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return -1;                    // it has ended
  const auto name_end = text->rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || name_end + 4 > text->size()) return -1;
  pid_t parent = -1;
  std::from_chars(text->data() + name_end + 4, text->data() + text->size(), parent);
  return parent;
}

/// Nothing: the kernel was built without such lists.
std::optional<std::vector<pid_t>> listed_children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto &thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const auto list = read_file((thread.path() / "children").string());
    if (!list) return std::nullopt;
    for (const auto &word : split(*list, " ")) {
      pid_t pid = 0;
      if (std::from_chars(word.data(), word.data() + word.size(), pid).ec == std::errc()) found.push_back(pid);
    }
  }
  if (error) return std::nullopt;
  return found;
}

Result<pid_t> start(SpawnOptions options, const Signals *signals) {
  std::vector<char *> argv;
  for (auto &word : options.command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto envp = options.environment.to_envp();
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) return exec_error(options.command.front(), errno);
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) run_child(options, argv.data(), envp.data(), self, signals, report[1]);
  const int fork_error = errno;
  close(report[1]);
  int cause = 0;
  const bool failed = pid < 0 || read(report[0], &cause, sizeof cause) == sizeof cause;  // otherwise exec closed it
  close(report[0]);
  if (!failed) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  return exec_error(options.command.front(), pid < 0 ? fork_error : cause);
}

/// What comes until the pipe's end, or the deadline.
std::string read_pipe(int fd, Deadline deadline) {
  std::string text;
  std::array<char, 4096> part;
  for (pollfd readable{fd, POLLIN, 0}; ::poll(&readable, 1, deadline.poll_timeout_ms()) > 0;) {
    const auto got = ::read(fd, part.data(), part.size());
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

bool ends_by(Deadline deadline, pid_t child) {
  for (; ::waitpid(child, nullptr, WNOHANG) != child; ::poll(nullptr, 0, 2))
    if (deadline.passed()) return false;
  return true;
}

/// `whom`: as kill() has it.
void end(pid_t child, pid_t whom) {
  constexpr auto kGrace = std::chrono::seconds(3);
  ::kill(whom, SIGTERM);
  if (ends_by(Deadline::in(kGrace), child)) return;
  ::kill(whom, SIGKILL);
  (void)await_end(child);
}

}  // namespace

Result<std::string> output_of(SpawnOptions options, Deadline deadline, const Signals *signals) {
  const auto program = options.command.front();
  const bool is_group = options.own_process_group;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return exec_error(program, errno);
  const Fd reader(ends[0]), nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Fd writer(ends[1]);
  options.stdin_fd = nothing.get();
  options.stdout_fd = options.stderr_fd = writer.get();
  const auto child = start(std::move(options), signals);
  if (!child) return child.error();
  writer.reset();
  auto text = read_pipe(reader.get(), deadline);
  if (ends_by(deadline, *child)) return text;
  end(*child, is_group ? -*child : *child);
  return Error{Code::kTimedOut, fmt::format("'{}' does not end", program)};
}

Result<pid_t> spawn(SpawnOptions options, const Signals &signals) { return start(std::move(options), &signals); }
Result<pid_t> spawn(SpawnOptions options) { return start(std::move(options), nullptr); }

int await_end(pid_t child) {
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) continue;
  return wait_status;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_wait_status(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("exited with {}", WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  return fmt::format("was killed by signal {} ({})", number, strsignal(number));
}

std::vector<pid_t> processes() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto name = entry.path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr == name.data() + name.size())
      found.push_back(pid);
  }
  return found;
}

std::string command_name(pid_t pid) {
  auto name = read_file(fmt::format("/proc/{}/comm", pid));
  if (!name.ok()) return {};
  if (name->ends_with('\n')) name->pop_back();
  return *std::move(name);
}

// The kernel's list of a thread's children leaves some out only while others are being reaped, which this process does
// itself. To ask all processes of a node who their parent is takes far longer.
std::vector<pid_t> children() {
  siginfo_t one{};
  if (waitid(P_ALL, 0, &one, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) return {};
  if (auto listed = listed_children()) return *std::move(listed);
  auto found = processes();
  std::erase_if(found, [self = getpid()](pid_t pid) { return parent_of(pid) != self; });
  return found;
}

bool carries_credential(pid_t pid, const std::string &credential) {
  const auto environment = read_file(fmt::format("/proc/{}/environ", pid));
  return environment.ok() && environment->find("NESSIE_CREDENTIAL=" + credential) != std::string::npos;
}

void let_go_of_streams() {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
}

void become_reaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

}  // namespace nessie::cli
