// SPDX-License-Identifier: BSD-3-Clause
// Design notes. How libraries are found (RPATH, RUNPATH, $ORIGIN, LD_LIBRARY_PATH, hardware folders, a cache) is the
// dynamic linker's affair, and doing it once more would be wrong sooner or later. So it is asked: started as a program,
// with LD_TRACE_LOADED_OBJECTS, it maps the files and runs nothing of them. (Its --list ends at the first library that
// is missing.) In front of the program itself, the kernel would start whatever linker that names, which might do
// anything; we ask that of this machine, which started us, and no other.
//
// In a trial run LD_DEBUG tells what is opened later: "files" names each library whose initialisation is called, and
// "scopes" where each looks for its functions first. That is the program, unless RTLD_DEEPBIND was asked for. A library
// of our own, by LD_AUDIT, would learn no more, and change how the program is run.
#include "loader.hpp"

#include "process.hpp"
#include "run_directory.hpp"

#include <base/clock.hpp>
#include <base/fd.hpp>
#include <base/file.hpp>
#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>

namespace nessie::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostListed = 1 << 20;
constexpr auto kListTimeout = seconds(20);
constexpr auto kGrace = seconds(3);
constexpr auto kTurn = milliseconds(20);

std::string_view next_line(std::string_view &text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// What follows `label` in the line; nothing if it does not have it.
std::optional<std::string_view> behind(std::string_view line, std::string_view label) {
  const auto place = line.find(label);
  if (place == std::string_view::npos) return std::nullopt;
  return line.substr(place + label.size());
}

bool is_first(std::string_view name, std::string_view list) {
  return list == name || (list.starts_with(name) && list[name.size()] == ' ');
}

// --- the list ---------------------------------------------------------------------------------------------------------

/// The dynamic linker that started this process, which is this machine's.
std::string own_interpreter() {
  const auto self = read_elf("/proc/self/exe");
  return self ? self->interpreter : std::string();
}

bool is_own(const std::string &interpreter) {
  std::error_code error;
  return std::filesystem::equivalent(interpreter, own_interpreter(), error) && !error;
}

Fd nothing() { return Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

/// All that comes through the pipe until its end, or the deadline.
std::string read_pipe(int fd, Signals &signals) {
  const auto deadline = Deadline::in(kListTimeout);
  std::string text;
  std::array<char, 4096> part;
  while (!deadline.passed() && text.size() < kMostListed) {
    const auto got = ::read(fd, part.data(), part.size());
    if (got == 0) break;
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EAGAIN && errno != EINTR) break;
    if (got < 0) (void)signals.wait(deadline, {fd});
  }
  return text;
}

std::optional<std::string> output_of(SpawnOptions options, Signals &signals) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Fd reader(pipe[0]), null = nothing();
  Fd writer(pipe[1]);
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  options.stdin_fd = options.stderr_fd = null.get();
  options.stdout_fd = writer.get();
  const auto pid = spawn(std::move(options), signals);
  if (!pid) return std::nullopt;
  writer.reset();
  auto text = read_pipe(reader.get(), signals);
  ::kill(*pid, SIGKILL);
  ::waitpid(*pid, nullptr, 0);
  return text;
}

std::optional<LoaderList> ask_loader(const Subject &subject, Signals &signals) {
  SpawnOptions options;
  std::error_code error;
  const auto real = std::filesystem::canonical(subject.path, error);  // $ORIGIN is where the file is, not a link to it
  options.command = {subject.program().elf.interpreter, error ? subject.path : real.string()};
  options.environment = Environment::current();
  for (const char *name : {"LD_AUDIT", "LD_DEBUG", "LD_DEBUG_OUTPUT"}) options.environment.unset(name);
  options.environment.set("LD_TRACE_LOADED_OBJECTS", "1");
  const auto text = output_of(std::move(options), signals);
  if (!text || text->empty()) return std::nullopt;
  return parse_loader_list(*text);
}

// --- the trial --------------------------------------------------------------------------------------------------------

/// False: it has not ended.
bool has_ended(pid_t pid, int &wait_status) { return ::waitpid(pid, &wait_status, WNOHANG) == pid; }

/// kCancelled: a signal came by which this process is to end.
Status await(pid_t pid, Deadline deadline, std::optional<int> &wait_status, Signals &signals) {
  for (int status = 0; !deadline.passed();) {
    if (has_ended(pid, status)) {
      wait_status = status;
      return {};
    }
    const auto signal = signals.wait(deadline.earlier(Deadline::in(kTurn)));
    if (signal && !signal->was_ignored && ends_by_default(signal->number))
      return Error{Code::kCancelled, "interrupted"};
  }
  return {};
}

/// Children that were there before, of whoever became this process, are not the program's.
std::vector<pid_t> children_but(const std::vector<pid_t> &earlier) {
  auto found = children();
  std::erase_if(found, [&](pid_t pid) { return std::ranges::count(earlier, pid) > 0; });
  return found;
}

/// It, its process group, and what else it left to us.
void end(pid_t pid, std::optional<int> wait_status, const std::vector<pid_t> &earlier, Signals &signals) {
  ::kill(-pid, SIGTERM);
  if (!wait_status) (void)await(pid, Deadline::in(kGrace), wait_status, signals);
  ::kill(-pid, SIGKILL);
  const auto deadline = Deadline::in(kGrace);
  for (auto left = children_but(earlier); !left.empty() && !deadline.passed(); left = children_but(earlier)) {
    for (const auto child : left) ::kill(child, SIGKILL), ::waitpid(child, nullptr, WNOHANG);
    (void)signals.wait(Deadline::in(kTurn));
  }
}

void add(const std::vector<LoaderLog::Library> &libraries, bool late, Subject &subject) {
  for (const auto &library : libraries) {
    if (std::ranges::count(subject.objects, library.path, &Object::path) > 0) continue;
    auto object = read_library(library.path);
    if (!object) continue;
    object->late = late;
    object->deep = late && library.deep;
    subject.objects.push_back(std::move(*object));
  }
}

void add_opened(const LoaderLog &log, Subject &subject) {
  if (!subject.why_unlisted.empty() && !log.program.empty()) {
    add(log.at_start, false, subject);
    subject.why_unlisted.clear();
  }
  add(log.libraries, true, subject);
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

// "\tlibm.so.6 => /lib/libm.so.6 (0x…)", "\t/lib64/ld.so (0x…)", "\tlibx.so => not found"
LoaderList parse_loader_list(std::string_view text) {
  LoaderList list;
  while (!text.empty()) {
    auto line = next_line(text);
    line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
    const auto found = behind(line, " => ");
    if (found == "not found") {
      list.missing.emplace_back(line.substr(0, line.find(" => ")));
      continue;
    }
    if (found) line = *found;
    const auto path = line.substr(0, std::min(line.rfind(" (0x"), line.size()));
    if (path.starts_with('/')) list.paths.emplace_back(path);
  }
  return list;
}

LoaderLog parse_loader_log(std::string_view text) {
  LoaderLog log;
  std::string object;
  Names deep;
  while (!text.empty()) {
    const auto line = next_line(text);
    if (const auto name = behind(line, ":\tinitialize program: ")) {
      log = {std::string(*name), std::move(log.libraries), {}};
      deep.clear();
    } else if (const auto path = behind(line, ":\tcalling init: ")) {
      log.libraries.push_back({std::string(*path), deep.contains(*path)});
    } else if (const auto name = behind(line, ":\tobject=")) {
      object = name->substr(0, name->rfind(" ["));
    } else if (const auto scope = behind(line, ":\t scope 0: "); scope && !is_first(log.program, *scope)) {
      deep.insert(object);
    }
  }
  if (log.program.empty()) log.libraries.clear();  // it had not begun
  return log;
}

void list_libraries(Subject &subject, Signals &signals) {
  const auto &program = subject.program().elf;
  if (program.interpreter.empty() || program.needed.empty()) return;
  if (!is_own(program.interpreter)) {
    subject.why_unlisted = fmt::format("its dynamic linker, {}, is not this machine's", printable(program.interpreter));
    return;
  }
  const auto list = ask_loader(subject, signals);
  if (!list) subject.why_unlisted = "the dynamic linker does not say";
  if (!list) return;
  subject.missing = list->missing;
  for (const auto &path : list->paths)
    if (auto object = read_library(path)) subject.objects.push_back(std::move(*object));
}

Status try_out(const std::vector<std::string> &command, double run_s, Subject &subject, Signals &signals) {
  const auto folder = RunDirectory::make();
  if (!folder) return folder.error();
  const auto null = nothing();
  SpawnOptions options;
  options.command = command;
  options.environment = Environment::current();
  options.environment.set("LD_DEBUG", "files,scopes");
  options.environment.set("LD_DEBUG_OUTPUT", folder->file("log"));
  options.own_process_group = true;
  options.death_signal = SIGKILL;
  options.stdin_fd = options.stdout_fd = options.stderr_fd = null.get();
  become_reaper();
  const auto earlier = children();
  const auto start = Clock::now();
  const auto pid = spawn(std::move(options), signals);
  if (!pid) return pid.error();
  std::optional<int> wait_status;
  const auto time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(run_s));
  auto waited = await(*pid, Deadline::in(time), wait_status, signals);
  subject.trial = Trial{seconds_since(start), wait_status.has_value(),
                        wait_status ? describe_wait_status(*wait_status) : std::string()};
  end(*pid, wait_status, earlier, signals);
  const auto text = read_file(folder->file(fmt::format("log.{}", *pid)));
  const auto log = text ? parse_loader_log(*text) : LoaderLog();
  subject.trial->became = log.program;
  add_opened(log, subject);
  return waited;
}

}  // namespace nessie::cli
