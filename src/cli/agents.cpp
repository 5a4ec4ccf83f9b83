// SPDX-License-Identifier: BSD-3-Clause
#include "agents.hpp"

#include <services/staging/board.h>
#include <base/credential.hpp>
#include <base/file.hpp>
#include <base/host.hpp>
#include <nnti/transport/transport.hpp>
#include <service/host.hpp>
#include <services/launch/client/client.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <utility>

namespace nessie::cli {

namespace {

constexpr auto kLauncherEnds = std::chrono::seconds(5);
static_assert(launch::MOST_SERVERS == NESSIE_MOST_SERVERS);

/// As the server left it; what is there already is better.
void keep(const std::string &path, const std::vector<std::byte> &bytes) {
  std::error_code ignored;
  if (bytes.empty() || std::filesystem::exists(path, ignored)) return;
  (void)write_file(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

}  // namespace

AgentServers::AgentServers(AgentServersOptions options)
    : options_(std::move(options)), changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  servers_.resize(static_cast<std::size_t>(options_.count));
}

Result<std::unique_ptr<AgentServers>> AgentServers::open(AgentServersOptions options) {
  std::unique_ptr<AgentServers> servers(new AgentServers(std::move(options)));
  if (auto status = servers->serve(); !status.ok()) return status.error();
  return servers;
}

Status AgentServers::serve() {
  const auto credential = Credential::from_hex(options_.credential);
  if (!credential.ok()) return credential.error();
  nnti::prepare_environment();  // there are threads from now on
  service::HostOptions options;
  options.runtime.endpoint.config = options_.config;
  options.runtime.endpoint.transports = options_.transports;
  options.runtime.endpoint.credential = *credential;
  auto host = service::Host::open(std::move(options));
  if (!host.ok()) return host.error();
  host_ = *std::move(host);
  const auto note_change = [fd = changed_.get()] {
    const std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(fd, &one, sizeof one);
  };
  const auto start = [&](const ProviderContext &context) -> Result<std::unique_ptr<Provider>> {
    auto run = launch::Server::start(context, servers_.size(), note_change);
    if (!run.ok()) return run.error();
    run_ = run->get();
    return std::unique_ptr<Provider>(*std::move(run));
  };
  if (auto started = host_->start({.name = "launch"}, start); !started.ok()) return started.error();
  thread_ = std::thread([this] { host_->run(); });
  return {};
}

AgentServers::~AgentServers() {
  if (launcher_ > 0 && !launcher_end_) end_launcher();
  if (thread_.joinable()) {
    host_->end();
    thread_.join();
    host_->finish();
  }
}

/// It ends with its agents; if not, it is made to.
void AgentServers::end_launcher() const {
  const auto terminate = Deadline::in(kLauncherEnds), kill = Deadline::in(2 * kLauncherEnds);
  for (bool told = false; ::waitpid(launcher_, nullptr, WNOHANG) == 0; ::poll(nullptr, 0, 5)) {
    if ((any_running() || terminate.passed()) && !std::exchange(told, true)) ::kill(launcher_, SIGTERM);
    if (kill.passed()) ::kill(launcher_, SIGKILL);
  }
}

std::string AgentServers::place() const { return std::string(launch::kScheme) + url(); }

const std::string &AgentServers::url() const { return host_->runtime().url(); }

Status AgentServers::launch(SpawnOptions launcher, const Signals &signals) {
  auto pid = spawn(std::move(launcher), signals);
  if (!pid) return pid.error();
  launcher_ = *pid;
  return {};
}

void AgentServers::look() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] auto got = ::read(changed_.get(), &ignored, sizeof ignored);
  const auto here = host_name();
  const auto states = run_->states();
  has_program_begun_ = std::ranges::any_of(states, &launch::State::mpi_has_begun);
  is_program_over_ = std::ranges::all_of(states, [](const auto &state) { return state.mpi_is_over || state.its_end; });
  for (std::size_t i = 0; i < states.size(); ++i) {
    auto &server = servers_[i];
    const auto &state = states[i];
    if (server.url.empty() && !state.url.empty() && state.host == here)
      agents_.push_back(static_cast<pid_t>(state.agent));
    server.url = state.url, server.host = state.host;
    while (server.deaths.size() < state.restarts.size()) note_restart(i, *state.restarts[server.deaths.size()]);
    server.is_away = state.restarts.size() > state.returns && state.its_end == nullptr;
    if (state.is_lost) lost_agents_.insert(static_cast<int>(i));
    if (state.its_end == nullptr || server.end) continue;
    keep_traces(*state.its_end);
    server.end = state.its_end->how.empty() ? "exited with 0" : state.its_end->how;
  }
}

void AgentServers::keep_traces(const launch::ending &end) const {
  keep(ledger_of(end.index), end.ledger);
  keep(board_of(end.index), end.board);
}

std::string AgentServers::ledger_of(unsigned index) const {
  return fmt::format("{}/server.{}.ledger", options_.run_directory, index);
}

std::string AgentServers::board_of(unsigned index) const {
  return fmt::format("{}/board.{}", options_.board_directory, index);
}

/// What it left is not to be taken for what the next one will leave.
void AgentServers::note_restart(std::size_t place, const launch::ending &end) {
  std::error_code ignored;
  const auto board = board_of(end.index), ledger = ledger_of(end.index);
  const bool is_here = std::filesystem::exists(board, ignored);
  std::filesystem::remove(ledger, ignored);
  keep_traces(end);
  if (options_.on_restart) options_.on_restart(static_cast<int>(place));
  std::filesystem::remove(ledger, ignored);
  if (!is_here) std::filesystem::remove(board, ignored);
  servers_[place].deaths.push_back(end.how);
}

std::string AgentServers::why_not_all() const {
  return launcher_end_ && !all_listen()
             ? fmt::format("what should start the staging servers {}; it says why above", *launcher_end_)
             : std::string();
}

bool AgentServers::is_program_over() const { return launcher_ < 0 && is_program_over_; }

bool AgentServers::is_left_alone(int index) const { return launcher_end_ || lost_agents_.contains(index); }

void AgentServers::note_exit(pid_t pid, int wait_status) {
  if (pid == launcher_) launcher_end_ = describe_wait_status(wait_status);
}

bool AgentServers::owns(pid_t pid) const { return pid == launcher_ || std::ranges::count(agents_, pid) > 0; }

}  // namespace nessie::cli
