// SPDX-License-Identifier: BSD-3-Clause
#include "agent.hpp"

#include "installation.hpp"
#include "launcher.hpp"
#include "log_folder.hpp"
#include "run_directory.hpp"
#include "run_lock.hpp"
#include "servers.hpp"
#include "speech.hpp"

#include <base/config.hpp>
#include <base/fd.hpp>
#include <base/file.hpp>
#include <base/host.hpp>
#include <launch_rpc.hpp>
#include <nnti/transport/transport.hpp>
#include <services/launch/client/client.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <sstream>
#include <thread>

namespace nessie::cli {

namespace {

using std::chrono::seconds;

constexpr auto kAnswer = seconds(30);  // the run's, to what it is told
constexpr auto kOthers = seconds(5);   // which all have joined the run before there is anything to recover

/// The folder of boards, where `nessie run` has not made it: on another node. It is locked as that of a run, for
/// `nessie clean`.
class BoardFolder {
 public:
  explicit BoardFolder(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    is_own_ = !path_.empty() && std::filesystem::create_directories(path_, ignored);
    if (is_own_) lock_ = lock_run_folder(path_);
  }
  ~BoardFolder() {
    if (is_own_) (void)remove_run_folder(path_);
  }
  BoardFolder(const BoardFolder &) = delete;

 private:
  const std::string path_;
  bool is_own_ = false;
  Fd lock_;
};

/// The run, from when the server has joined it.
class Run {
 public:
  static Result<std::unique_ptr<Run>> find(const Config &config, const std::string &url, Deadline deadline) {
    nssi::RuntimeOptions options;
    options.endpoint.config = config;
    options.endpoint.listen = false;
    auto runtime = nssi::Runtime::open(std::move(options));
    if (!runtime.ok()) return runtime.error();
    auto peer = (*runtime)->connect(url, deadline);
    if (!peer.ok()) return peer.error();
    return std::unique_ptr<Run>(new Run(*std::move(runtime), *peer));
  }
  ~Run() {
    if (life_line_) runtime_->disconnect(peer_);
    if (waiter_.joinable()) waiter_.join();
  }
  Run(const Run &) = delete;

  void join(const launch::server &server) {
    life_line_.emplace(client_.JOIN_async(server, {.deadline = Deadline::never()}));
    waiter_ = std::thread([this] {
      answer_ = life_line_->wait();
      const std::uint64_t one = 1;
      [[maybe_unused]] auto written = ::write(answered_.get(), &one, sizeof one);
    });
  }
  /// Can be read from when the run has answered, or is gone.
  int fd() const { return answered_.get(); }
  /// What it has answered; nothing yet.
  std::optional<Status> answer() {
    std::uint64_t count = 0;
    if (::read(answered_.get(), &count, sizeof count) != sizeof count) return std::nullopt;
    return answer_;
  }
  Status tell_of_mpi(unsigned index, launch::stage now) { return client_.MPI_IS(index, now, within(kAnswer)); }
  Status tell_end(const launch::ending &end) { return client_.ENDED(end, within(kAnswer)); }
  Status tell_restart(const launch::ending &end) { return client_.RESTARTED(end, within(kAnswer)); }
  /// Where all servers are; empty: not known.
  std::vector<std::string> servers() {
    const auto told = client_.SERVERS(within(kOthers));
    return told.ok() ? std::vector<std::string>(told->urls.begin(), told->urls.end()) : std::vector<std::string>();
  }
  Status tell_return(unsigned index) { return client_.IS_BACK(index, within(kAnswer)); }

 private:
  Run(std::unique_ptr<nssi::Runtime> runtime, nssi::PeerId peer)
      : runtime_(std::move(runtime)), peer_(peer), client_(*runtime_, peer) {}
  static nssi::CallOptions within(seconds time) { return {.deadline = Deadline::in(time)}; }

  std::unique_ptr<nssi::Runtime> runtime_;
  const nssi::PeerId peer_;
  launch::LAUNCH::ONE::Client client_;
  Fd answered_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Status answer_;
  std::optional<nssi::Future<void>> life_line_;
  std::thread waiter_;
};

std::vector<std::byte> bytes_of(const std::string &path) {
  const auto text = read_file(path);
  if (!text.ok()) return {};
  const auto *begin = reinterpret_cast<const std::byte *>(text->data());
  return {begin, begin + text->size()};
}

/// The part of "6-7/8-9" for server `index`.
std::string cores_of(const std::string &list, int index) {
  std::istringstream parts(list);
  std::string part;
  for (int i = 0; i <= index; ++i) std::getline(parts, part, '/');
  return parts ? part : std::string();
}

class Agent {
 public:
  Agent(const AgentOptions &options, const Config &config, int index, Signals signals, RunDirectory folder,
        LogFolder log)
      : options_(options),
        config_(config),
        index_(index),
        signals_(std::move(signals)),
        folder_(std::move(folder)),
        log_(std::move(log)),
        boards_(options.board_directory) {
    log_.note_in(folder_.path());
  }

  int execute(const Installation &installation) {
    const auto timeout = launch::start_timeout(config_);
    if (!timeout) return fail(timeout.error());
    auto server = ChildServers::start(server_options(installation, *timeout), folder_, signals_);
    if (!server.ok()) return fail(server.error());
    server_ = *std::move(server);
    const auto deadline = Deadline::in(*timeout);
    while (server_->running(0) && !server_->all_listen() && !deadline.passed()) turn(std::chrono::milliseconds(2));
    auto run = Run::find(config_, options_.run, Deadline::in(*timeout));
    if (!run.ok()) return fail(run.error());
    run_ = *std::move(run);
    if (server_->all_listen())
      run_->join(
          {static_cast<unsigned>(index_), server_->urls().front(), host_name(), static_cast<unsigned>(::getpid())});
    else if (server_->running(0))
      server_->kill(0);
    while (server_->running(0)) turn(seconds(60));
    if (!log_.remove()) say(fmt::format("error: on {}, {}", host_name(), describe_left(log_.path())));
    return tell_end();
  }

 private:
  ServerOptions server_options(const Installation &installation, std::chrono::milliseconds patience) {
    ServerOptions options;
    options.program = installation.nessied;
    options.first = index_;
    options.of = options_.servers;
    options.cores = {cores_of(options_.cores, index_)};
    options.mode = options_.mode;
    options.memory = options_.memory;
    options.durability = options_.durability;
    options.log_folder = log_.path();
    options.patience = patience;
    options.before_restart = [this](int) { tell_restart(); };
    options.all_urls = [this] { return run_ ? run_->servers() : std::vector<std::string>(); };
    options.credential = config_.get_or("credential", "");
    options.board_directory = options_.board_directory;
    auto &words = options.arguments;
    if (!options_.listen.empty()) words.insert(words.end(), {"--listen", options_.listen});
    if (!options_.spill.empty()) words.insert(words.end(), {"--spill", options_.spill});
    if (!options_.fail_fast.empty()) words.insert(words.end(), {"--set", "staging.fail_fast=" + options_.fail_fast});
    if (!options_.read_back.empty()) words.insert(words.end(), {"--set", "staging.read_back=" + options_.read_back});
    return options;
  }

  int fail(const Error &error) {
    say(fmt::format("error: staging server {} on {}: {}", index_, host_name(), error.message));
    if (server_) server_->end();
    while (server_ && server_->running(0)) turn(seconds(60));
    return 1;
  }

  void turn(std::chrono::milliseconds at_most) {
    const auto until = Deadline::in(at_most).earlier(server_->due());
    const auto signal = signals_.wait(until, {run_ ? run_->fd() : -1, is_over_ ? -1 : stdin_fd()});
    if (signal && asks_to_end(signal->number)) server_->end();
    server_->reap();
    server_->look();
    if (run_) hear_of_run();
    if (is_away_ && !server_->is_away(0)) tell_return();
  }

  int stdin_fd() const { return options_.is_rank ? STDIN_FILENO : -1; }

  void hear_of_run() {
    if (const auto answer = run_->answer(); answer && answer->ok())
      server_->kill(0);
    else if (answer)
      server_->end();  // the run is gone: what it has acknowledged goes to the files
    if (options_.is_rank && !is_over_) hear_of_rank();
  }

  /// A byte: the rank has initialised MPI. The end: it has finalised MPI, or it is gone.
  void hear_of_rank() {
    pollfd event{STDIN_FILENO, POLLIN, 0};
    char ignored = 0;
    if (::poll(&event, 1, 0) <= 0) return;
    is_over_ = ::read(STDIN_FILENO, &ignored, 1) <= 0;
    const auto told =
        run_->tell_of_mpi(static_cast<unsigned>(index_), is_over_ ? launch::stage::OVER : launch::stage::BEGUN);
    if (!told.ok()) server_->end();
  }

  /// With what the server has left of itself.
  launch::ending ending(const std::string &how) const {
    return {static_cast<unsigned>(index_), how, bytes_of(folder_.file(fmt::format("server.{}.ledger", index_))),
            bytes_of(fmt::format("{}/board.{}", options_.board_directory, index_))};
  }

  int tell_end() {
    const auto &how = server_->how_it_ended(0);
    const auto end = how == "exited with 0" ? launch::ending{static_cast<unsigned>(index_), {}, {}, {}} : ending(how);
    return run_->tell_end(end).ok() ? 0 : 1;
  }

  /// The run is gone, if it does not hear.
  void tell_restart() {
    is_away_ = true;
    if (run_) (void)run_->tell_restart(ending(server_->last_end(0)));
  }
  void tell_return() {
    is_away_ = false;
    if (run_ && server_->running(0)) (void)run_->tell_return(static_cast<unsigned>(index_));
  }

  const AgentOptions &options_;
  const Config &config_;
  const int index_;
  Signals signals_;
  RunDirectory folder_;
  LogFolder log_;
  BoardFolder boards_;
  std::unique_ptr<ChildServers> server_;
  std::unique_ptr<Run> run_;
  bool is_over_ = false;
  bool is_away_ = false;  ///< the server, and the run knows
};

int fail(const std::string &why) {
  say("error: " + why);
  return 1;
}

}  // namespace

std::vector<std::string> agent_command(const std::string &nessie, const AgentOptions &options) {
  std::vector<std::string> words = {
      nessie,   "agent",      "--run",    options.run,    "--servers", std::to_string(options.servers),
      "--mode", options.mode, "--memory", options.memory, "--boards",  options.board_directory};
  if (!options.durability.empty()) words.insert(words.end(), {"--durability", options.durability});
  if (!options.log_base.empty()) words.insert(words.end(), {"--log", options.log_base});
  if (!options.spill.empty()) words.insert(words.end(), {"--spill", options.spill});
  if (!options.fail_fast.empty()) words.insert(words.end(), {"--fail-fast", options.fail_fast});
  if (!options.read_back.empty()) words.insert(words.end(), {"--read-back", options.read_back});
  if (!options.listen.empty()) words.insert(words.end(), {"--listen", options.listen});
  if (!options.cores.empty()) words.insert(words.end(), {"--cores", options.cores});
  if (options.is_rank) words.emplace_back("--rank");
  return words;
}

int agent(const AgentOptions &options) {
  const auto config = Config::load();
  if (!config) return fail(config.error().message);
  const auto installation = Installation::find();
  if (!installation) return fail(installation.error().message);
  const auto rank = rank_in(Environment::current());
  const int index = rank ? rank->number - (options.is_first ? 0 : rank->of - options.servers) : -1;
  if (index < 0 || index >= options.servers)
    return fail("`nessie agent` is started by `nessie run`, through a launcher, as one of the last processes");
  auto signals = Signals::open();
  if (!signals) return fail(signals.error().message);
  auto folder = RunDirectory::make();
  if (!folder) return fail(folder.error().message);
  auto log = LogFolder::choose(options.log_base, options.durability);
  if (!log) return fail(log.error().message);
  nnti::prepare_environment();
  return Agent(options, *config, index, std::move(*signals), std::move(*folder), std::move(*log))
      .execute(*installation);
}

}  // namespace nessie::cli
