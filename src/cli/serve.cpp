// SPDX-License-Identifier: BSD-3-Clause
// Without a file, `nessie serve` is a `nessie run` in the background. Its program, the keeper (`nessie keep`), stands
// for all programs that will come: it writes down what they need, waits until it is to stop, and ends; then everything
// goes as at the end of a program.
#include "commands.hpp"

#include "composition_keeper.hpp"
#include "environment.hpp"
#include "installation.hpp"
#include "speech.hpp"
#include "standing.hpp"

#include <services/staging/board.h>
#include <base/clock.hpp>
#include <base/config.hpp>
#include <base/fd.hpp>
#include <base/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr auto kGlance = milliseconds(20);
constexpr int kLogMode = 0600;

int fail(const char *command, const Error &error) { return say_failure(command, error.message); }

void pause_for(milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }

bool exists(const std::string &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void remove_all(const std::vector<std::string> &paths) {
  std::error_code ignored;
  for (const auto &path : paths) fs::remove(path, ignored);
}

/// A name is free if nobody has it, or if who had it was killed.
Status make_free(const std::string &name, const StandingFiles &files) {
  const auto standing = find_standing(name);
  if (standing)
    return Error{Code::kExists,
                 fmt::format("'{}' is served already, on {}: `nessie stop {}` ends it, or say another --name", name,
                             standing->keeper.host, name)};
  if (standing.code() != Code::kNotFound && standing.code() != Code::kPeerLost) return standing.error();
  remove_all({files.record, files.stop, files.end, files.log});
  return {};
}

/// In the background: no terminal, and what it says in a file.
bool leave_terminal(const StandingFiles &files) {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log = ::open(files.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, kLogMode);
  if (nothing < 0 || log < 0) return false;
  (void)::flock(log, LOCK_EX | LOCK_NB);  // as long as any of its processes lives: is_gone()
  return ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(log, STDOUT_FILENO) >= 0 && ::dup2(log, STDERR_FILENO) >= 0;
}

int serve_until_stopped(const ServeOptions &options, const StandingFiles &files) {
  auto run_options = options.run;
  run_options.for_other_jobs = true;
  run_options.command = {own_path(), "keep", options.name};
  const int code =
      options.composition.empty() ? run(run_options) : serve_composition(options.composition, options.name, files);
  (void)write_file(files.end, std::to_string(code));
  remove_all({files.record, files.stop});
  return code;
}

void show(const std::string &path) {
  if (const auto text = read_file(path)) write_to_stderr(*text);
}

/// Whether none of the processes is left that say something in the log.
bool is_gone(const StandingFiles &files) {
  const Fd log(::open(files.log.c_str(), O_RDONLY | O_CLOEXEC));
  return log && ::flock(log.get(), LOCK_SH | LOCK_NB) == 0;
}

int await_record(const ServeOptions &options, pid_t server, const StandingFiles &files) {
  for (; !exists(files.record); pause_for(kGlance)) {
    int wait_status = 0;
    if (::waitpid(server, &wait_status, WNOHANG) != server) continue;
    show(files.log);
    remove_all({files.log, files.end});
    return say_failure("serve", "the servers did not start; what they said is above");
  }
  const auto standing = find_standing(options.name);
  if (!standing) return fail("serve", standing.error());
  say(fmt::format("{} on {} as '{}'. nessie attach {} -- mpiexec -n 8 ./sim; nessie stop {}",
                  counted(standing->urls.size(), "staging server"), standing->keeper.host, options.name, options.name,
                  options.name));
  return 0;
}

sigset_t ends() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

/// True: one of the signals has come.
bool wait_for_signal(const sigset_t &signals, milliseconds time) {
  const timespec limit{time.count() / 1000, time.count() % 1000 * 1'000'000};
  return ::sigtimedwait(&signals, nullptr, &limit) > 0;
}

}  // namespace

int serve(const ServeOptions &options) {
  const auto files = StandingFiles::of(options.name);
  if (!files) return fail("serve", files.error());
  if (auto free = make_free(options.name, *files); !free.ok()) return fail("serve", free.error());
  if (options.foreground) return serve_until_stopped(options, *files);
  const pid_t server = ::fork();
  if (server < 0) return say_failure("serve", "cannot make a process");
  if (server > 0) return await_record(options, server, *files);
  if (!leave_terminal(*files)) return say_failure("serve", fmt::format("cannot write {}", files->log));
  return serve_until_stopped(options, *files);
}

int keep(const std::string &name) {
  const auto signals = ends();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto files = StandingFiles::of(name);
  if (!files) return fail("keep", files.error());
  const auto environment = Environment::current();
  const auto variable = [&](const char *its) { return environment.get(its).value_or(""); };
  const Standing standing{name, service::this_process(), split(variable("NESSIE_SERVERS"), " "),
                          variable("NESSIE_CREDENTIAL"), variable(NESSIE_BOARD_VARIABLE)};
  if (standing.urls.empty()) return say_failure("keep", "there are no servers: `nessie serve` starts this");
  if (auto written = write_standing(standing); !written.ok()) return fail("keep", written.error());
  while (!files->are_to_stop() && exists(files->record))
    if (wait_for_signal(signals, kWatchForStop)) break;
  remove_all({files->record});  // nobody attaches any more
  return 0;
}

int stop(const StopOptions &options) {
  const auto standing = find_standing(options.name);
  if (!standing) return fail("stop", standing.error());
  const auto files = StandingFiles::of(standing->name);
  if (!files) return fail("stop", files.error());
  if (auto asked = write_file(files->stop, ""); !asked.ok()) return fail("stop", asked.error());
  const auto deadline = Deadline::in(std::chrono::seconds(options.timeout_s));
  for (; !exists(files->end); pause_for(kGlance)) {
    if (is_gone(*files) && !exists(files->end)) {
      show(files->log);
      remove_all({files->record, files->stop, files->log});
      return say_failure("stop", "it was killed before it could tell what became of what it had: look at the files");
    }
    if (deadline.passed())
      return say_failure("stop", fmt::format("what it has is not in the files after {} s; it goes on, and says in {} "
                                             "how it ends (--timeout waits longer)",
                                             options.timeout_s, files->log));
  }
  int code = 1;
  if (const auto text = read_file(files->end)) std::from_chars(text->data(), text->data() + text->size(), code);
  show(files->log);
  remove_all({files->end, files->log});
  return code;
}

}  // namespace nessie::cli
