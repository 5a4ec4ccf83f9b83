// SPDX-License-Identifier: BSD-3-Clause
#include "servers.hpp"

#include "losses.hpp"

#include <base/file.hpp>
#include <base/host.hpp>
#include <nssi/drive/pool.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

namespace nessie::cli {

namespace {

constexpr auto kGlance = std::chrono::milliseconds(10);  // for a server that is being started again

SpawnOptions server_command(const ServerOptions &options, const RunDirectory &folder, int index, int life_line) {
  SpawnOptions spawn;
  spawn.command = {options.program,       "--parent",    std::to_string(STDIN_FILENO), "--index",
                   std::to_string(index), "--servers",   std::to_string(options.of),   "--run-dir",
                   folder.path(),         "--board-dir", options.board_directory};
  if (!options.mode.empty()) spawn.command.insert(spawn.command.end(), {"--mode", options.mode});
  if (!options.memory.empty()) spawn.command.insert(spawn.command.end(), {"--memory", options.memory});
  if (!options.durability.empty()) spawn.command.insert(spawn.command.end(), {"--durability", options.durability});
  if (!options.log_folder.empty()) spawn.command.insert(spawn.command.end(), {"--log", options.log_folder});
  spawn.command.insert(spawn.command.end(), options.arguments.begin(), options.arguments.end());
  spawn.environment = Environment::current();
  make_singleton(folder.path(), spawn.environment);
  spawn.environment.set("NESSIE_CREDENTIAL", options.credential);
  spawn.environment.unset("NESSIE_SERVERS");
  const auto place = static_cast<std::size_t>(index - options.first);
  if (const auto cores = nssi::parse_cores(place < options.cores.size() ? options.cores[place] : ""); cores.ok())
    spawn.cores = *cores;
  spawn.own_process_group = true;
  spawn.stdin_fd = life_line;
  spawn.stdout_to_stderr = true;
  return spawn;
}

}  // namespace

std::vector<std::string> Servers::urls() const {
  std::vector<std::string> urls;
  for (const auto &server : servers_) urls.push_back(server.url);
  return urls;
}

int Servers::listening() const {
  return static_cast<int>(std::ranges::count_if(servers_, [](const Server &server) { return !server.url.empty(); }));
}

bool Servers::any_running() const {
  return std::ranges::any_of(servers_, [](const Server &server) { return !server.end; });
}

void Servers::note_lost(int index) {
  auto &lost = servers_[static_cast<std::size_t>(index)];
  if (!lost.end) lost.end = fmt::format("on {} is lost, with its agent", lost.host);
}

void Servers::note_absent(int index) {
  auto &absent = servers_[static_cast<std::size_t>(index)];
  if (!absent.end) absent.end = "did not start";
}

void Servers::kill_all() {
  for (int index = 0; index < count(); ++index) kill(index);
}

Result<std::unique_ptr<ChildServers>> ChildServers::start(ServerOptions options, const RunDirectory &folder,
                                                          const Signals &signals) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return Error{Code::kIo, "cannot make a pipe", Scope::kProcess, errno};
  std::unique_ptr<ChildServers> servers(new ChildServers(std::move(options), folder, signals));
  servers->servers_end_ = Fd(pipe_ends[0]), servers->life_line_ = Fd(pipe_ends[1]);
  for (int i = 0; i < servers->options_.count; ++i) {
    auto &server = servers->servers_.emplace_back();
    servers->rests_.emplace_back();
    auto pid = servers->start_one(static_cast<std::size_t>(i));
    if (!pid) return servers->servers_.pop_back(), pid.error();
    server.pid = *pid;
  }
  return servers;
}

ChildServers::~ChildServers() {
  for (int place = 0; place < count(); ++place) {
    kill(place);
    if (const pid_t pid = server(place).pid; running(place) && pid > 0) waitpid(pid, nullptr, 0);
  }
}

/// Where the last one was reached, if there was one. What that one has left elsewhere is with other servers.
Result<pid_t> ChildServers::start_one(std::size_t place) const {
  auto spawned = server_command(options_, folder_, index(place), servers_end_.get());
  if (const auto &url = servers_[place].url; !url.empty())
    spawned.command.insert(spawned.command.end(),
                           {"--set", "nnti.listen_at=" + url, "--set", "staging.servers_at=" + all_urls(), "--set",
                            fmt::format("staging.restarts={}", servers_[place].deaths.size() + 1)});
  return spawn(std::move(spawned), signals_);
}

std::string ChildServers::all_urls() const {
  return fmt::format("{}", fmt::join(options_.all_urls ? options_.all_urls() : urls(), " "));
}

void ChildServers::end() { life_line_.reset(); }

void ChildServers::look() {
  for (std::size_t place = 0; place < servers_.size(); ++place) {
    auto &server = servers_[place];
    if (rests_[place].again && rests_[place].again->passed()) start_again(place);
    if (!server.url.empty() && (!server.is_away || server.pid < 0)) continue;
    const auto url = first_line_of(file_of(place, "url"));
    if (url.empty()) {
      if (rests_[place].late.passed()) kill(static_cast<int>(place));
      continue;
    }
    server.url = url, server.host = host_name();
    server.is_away = false;
    rests_[place].late = Deadline::never();
  }
}

Deadline ChildServers::due() const {
  auto first = Deadline::never();
  for (std::size_t place = 0; place < servers_.size(); ++place) {
    if (rests_[place].again)
      first = first.earlier(*rests_[place].again);
    else if (servers_[place].is_away && !servers_[place].end)
      first = first.earlier(Deadline::in(kGlance));
  }
  return first;
}

void ChildServers::note_exit(pid_t pid, int wait_status) {
  const auto found = std::ranges::find(servers_, pid, &Server::pid);
  if (found == servers_.end()) return;
  auto &server = *found;
  const auto place = static_cast<std::size_t>(found - servers_.begin());
  auto &rest = rests_[place];
  ::kill(-pid, SIGKILL);  // whatever it may have left in its process group
  server.pid = -1;
  server.exit_code = exit_code_of(wait_status);
  rest.how = rest.late.passed()
                 ? "did not listen in time when it was started again (NESSIE_RUN_START_TIMEOUT gives it longer)"
                 : describe_wait_status(wait_status);
  rest.late = Deadline::never();
  rest.is_noted = false;
  const bool may = may_go_on(place, wait_status);
  if (may) rest.again = rest.restarts.next(Clock::now());
  server.is_away = rest.again.has_value();
  if (may && !rest.again) rest.how += ", again and again";
  if (!rest.again) server.end = rest.how;
}

/// In the run's folder.
std::string ChildServers::file_of(std::size_t place, const char *suffix) const {
  return folder_.file(fmt::format("server.{}.{}", index(place), suffix));
}

/// One that has told what it did has finished, however it ended then.
bool ChildServers::may_go_on(std::size_t place, int wait_status) const {
  const bool may = wait_status != 0 && !rests_[place].is_final && !servers_[place].url.empty();
  std::error_code ignored;
  if (!may || options_.log_folder.empty() || std::filesystem::exists(file_of(place, "report"), ignored)) return false;
  const auto log = fmt::format("{}/server.{}", options_.log_folder, index(place));
  return keeps_files_ || std::filesystem::exists(log, ignored) ||
         read_remains(folder_.path(), options_.board_directory, index(place)).has_kept_files;
}

void ChildServers::start_again(std::size_t place) {
  auto &server = servers_[place];
  auto &rest = rests_[place];
  rest.again.reset();
  if (!std::exchange(rest.is_noted, true) && options_.before_restart) options_.before_restart(index(place));
  std::error_code ignored;
  std::filesystem::remove(file_of(place, "url"), ignored);
  const auto pid = start_one(place);
  if (pid) {
    server.pid = *pid;
    rest.late = Deadline::in(options_.patience);
    return server.deaths.push_back(rest.how);
  }
  rest.again = rest.restarts.next(Clock::now());
  if (rest.again) return;
  server.end = fmt::format("{}, and cannot be started again: {}", rest.how, pid.error().message);
  server.is_away = false;
}

void ChildServers::reap() {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) note_exit(pid, wait_status);
}

bool ChildServers::owns(pid_t pid) const { return pid > 0 && std::ranges::count(servers_, pid, &Server::pid) > 0; }

void ChildServers::kill(int place) {
  auto &server = servers_[static_cast<std::size_t>(place)];
  auto &rest = rests_[static_cast<std::size_t>(place)];
  rest.is_final = true;
  if (server.end) return;
  if (server.pid > 0) {
    ::kill(-server.pid, SIGKILL);
    ::kill(server.pid, SIGKILL);
  } else if (rest.again) {
    rest.again.reset();
    server.end = rest.how;
    server.is_away = false;
  }
}

}  // namespace nessie::cli
