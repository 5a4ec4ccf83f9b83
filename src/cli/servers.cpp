// SPDX-License-Identifier: BSD-3-Clause
#include "servers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

namespace nessie::cli {

namespace {

SpawnOptions server_command(const ServerOptions &options, const RunDirectory &folder, int index, int life_line) {
  SpawnOptions spawn;
  spawn.command = {options.program,
                   "--parent",
                   std::to_string(STDIN_FILENO),
                   "--index",
                   std::to_string(index),
                   "--servers",
                   std::to_string(options.count),
                   "--mode",
                   options.mode,
                   "--run-dir",
                   folder.path(),
                   "--board-dir",
                   options.board_directory};
  if (!options.memory.empty()) spawn.command.insert(spawn.command.end(), {"--memory", options.memory});
  spawn.command.insert(spawn.command.end(), options.arguments.begin(), options.arguments.end());
  spawn.environment = Environment::current();
  make_singleton(folder.path(), spawn.environment);
  spawn.environment.set("NESSIE_CREDENTIAL", options.credential);
  spawn.environment.unset("NESSIE_SERVERS");
  spawn.own_process_group = true;
  spawn.stdin_fd = life_line;
  spawn.stdout_to_stderr = true;
  return spawn;
}

std::string first_line(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

Result<Servers> Servers::start(const ServerOptions &options, const RunDirectory &folder, const Signals &signals) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return Error{Code::kIo, "cannot make a pipe", Scope::kProcess, errno};
  Servers servers;
  servers.life_line_ = pipe_ends[1];
  std::optional<Error> failure;
  for (int index = 0; index < options.count && !failure; ++index) {
    auto pid = spawn(server_command(options, folder, index, pipe_ends[0]), signals);
    if (pid)
      servers.servers_.push_back(Server{*pid, {}, {}});
    else
      failure = pid.error();
  }
  close(pipe_ends[0]);
  if (failure) return *failure;
  return servers;
}

Servers::Servers(Servers &&other) noexcept
    : servers_(std::move(other.servers_)), life_line_(std::exchange(other.life_line_, -1)) {
  other.servers_.clear();
}

Servers::~Servers() {
  for (auto &server : servers_) {
    if (server.wait_status) continue;
    ::kill(-server.pid, SIGKILL);
    ::kill(server.pid, SIGKILL);
    waitpid(server.pid, nullptr, 0);
  }
  if (life_line_ >= 0) close(life_line_);
}

bool Servers::any_running() const {
  return std::any_of(servers_.begin(), servers_.end(), [](const Server &server) { return !server.wait_status; });
}

bool Servers::find_urls(const RunDirectory &folder) {
  bool all = true;
  for (int index = 0; index < count(); ++index) {
    auto &url = servers_[index].url;
    if (url.empty()) url = first_line(folder.file(fmt::format("server.{}.url", index)));
    all = all && !url.empty();
  }
  return all;
}

std::vector<std::string> Servers::urls() const {
  std::vector<std::string> urls;
  for (const auto &server : servers_) urls.push_back(server.url);
  return urls;
}

std::optional<int> Servers::note_exit(pid_t pid, int wait_status) {
  for (int index = 0; index < count(); ++index) {
    if (servers_[index].pid != pid) continue;
    servers_[index].wait_status = wait_status;
    ::kill(-pid, SIGKILL);  // whatever it may have left in its process group
    return index;
  }
  return std::nullopt;
}

bool Servers::owns(pid_t pid) const {
  return std::any_of(servers_.begin(), servers_.end(), [pid](const Server &server) { return server.pid == pid; });
}

void Servers::kill(int index) {
  if (!running(index)) return;
  ::kill(-pid(index), SIGKILL);
  ::kill(pid(index), SIGKILL);
}

void Servers::kill_all() {
  for (int index = 0; index < count(); ++index) kill(index);
}

}  // namespace nessie::cli
