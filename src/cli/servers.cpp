// SPDX-License-Identifier: BSD-3-Clause
#include "servers.hpp"

#include <base/file.hpp>
#include <base/host.hpp>
#include <nssi/drive/pool.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

namespace nessie::cli {

namespace {

SpawnOptions server_command(const ServerOptions &options, const RunDirectory &folder, int index, int life_line) {
  SpawnOptions spawn;
  spawn.command = {options.program,       "--parent",    std::to_string(STDIN_FILENO), "--index",
                   std::to_string(index), "--servers",   std::to_string(options.of),   "--run-dir",
                   folder.path(),         "--board-dir", options.board_directory};
  if (!options.mode.empty()) spawn.command.insert(spawn.command.end(), {"--mode", options.mode});
  if (!options.memory.empty()) spawn.command.insert(spawn.command.end(), {"--memory", options.memory});
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

Result<std::unique_ptr<ChildServers>> ChildServers::start(const ServerOptions &options, const RunDirectory &folder,
                                                          const Signals &signals) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return Error{Code::kIo, "cannot make a pipe", Scope::kProcess, errno};
  std::unique_ptr<ChildServers> servers(new ChildServers(folder, options.first));
  servers->life_line_ = pipe_ends[1];
  std::optional<Error> failure;
  for (int index = options.first; index < options.first + options.count && !failure; ++index) {
    auto pid = spawn(server_command(options, folder, index, pipe_ends[0]), signals);
    if (pid)
      servers->servers_.push_back({.pid = *pid});
    else
      failure = pid.error();
  }
  close(pipe_ends[0]);
  if (failure) return *failure;
  return servers;
}

ChildServers::~ChildServers() {
  for (auto &server : servers_) {
    if (server.end) continue;
    ::kill(-server.pid, SIGKILL);
    ::kill(server.pid, SIGKILL);
    waitpid(server.pid, nullptr, 0);
  }
  end();
}

void ChildServers::end() {
  if (const int life_line = std::exchange(life_line_, -1); life_line >= 0) close(life_line);
}

void ChildServers::look() {
  for (int i = 0; i < count(); ++i) {
    auto &server = servers_[static_cast<std::size_t>(i)];
    if (!server.url.empty()) continue;
    server.url = first_line_of(fmt::format("{}/server.{}.url", folder_, first_ + i));
    if (!server.url.empty()) server.host = host_name();
  }
}

void ChildServers::note_exit(pid_t pid, int wait_status) {
  const auto server = std::ranges::find(servers_, pid, &Server::pid);
  if (server == servers_.end()) return;
  server->end = describe_wait_status(wait_status);
  server->exit_code = exit_code_of(wait_status);
  ::kill(-pid, SIGKILL);  // whatever it may have left in its process group
}

void ChildServers::reap() {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) note_exit(pid, wait_status);
}

bool ChildServers::owns(pid_t pid) const { return std::ranges::count(servers_, pid, &Server::pid) > 0; }

void ChildServers::kill(int index) {
  if (!running(index)) return;
  ::kill(-server(index).pid, SIGKILL);
  ::kill(server(index).pid, SIGKILL);
}

}  // namespace nessie::cli
