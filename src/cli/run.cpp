// SPDX-License-Identifier: BSD-3-Clause
// Design notes. One thread follows signals and children; it never blocks for longer than a turn (kTurn) except in
// poll(2). The program stays in this process's process group, so that the terminal treats both as one job: it gets
// Ctrl-C and Ctrl-Z, and reads stdin, as it would alone. What is sent to this process only is passed on. The servers
// are out of the terminal's reach and end when asked to, or when this process is gone.
//
// Every descendant of the program ends before the drain begins: this process is the reaper of orphans (a rank whose
// mpiexec was killed), so nothing can escape it.
#include "commands.hpp"

#include "agent.hpp"
#include "agent_launch.hpp"
#include "agents.hpp"
#include "embedded.hpp"
#include "file_streams.hpp"
#include "installation.hpp"
#include "launcher.hpp"
#include "log_folder.hpp"
#include "losses.hpp"
#include "memory.hpp"
#include "notes.hpp"
#include "other_nodes.hpp"
#include "outer_run.hpp"
#include "process.hpp"
#include "run_drain.hpp"
#include "run_folders.hpp"
#include "run_plan.hpp"
#include "servers.hpp"
#include "signals.hpp"
#include "speech.hpp"
#include "start_clock.hpp"
#include "summary.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/credential.hpp>
#include <base/descriptors.hpp>
#include <base/fence.hpp>
#include <services/launch/client/client.hpp>
#include <services/staging/server/board.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

namespace nessie::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTurn = milliseconds(50);
constexpr auto kDefaultLinger = seconds(10);
constexpr milliseconds kDefaultStreamLinger = seconds(60);
constexpr std::uint64_t kLeastMemory = 32 << 20;
constexpr const char *kNeverBegan =
    "the program has ended, and never initialised MPI, or by way of no function that Nessie stands in front of: run it "
    "without --mpmd";
constexpr const char *kNeverStarted = "the program's launcher has ended before the staging servers could start";
constexpr double kPatienceWithLauncher = 3;  // seconds without any process of the program
constexpr double kWorthALine = 1;            // second of starting
constexpr double kUnseen = 1;                // seconds without any process of the program: it has ended
constexpr auto kWorthNaming = seconds(3);    // from being told to end
constexpr auto kSignalGrace = seconds(3);

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class T> Status keep(Result<T> result, std::optional<T> &place) {
  if (!result) return result.error();
  place.emplace(std::move(*result));
  return {};
}

std::string count_processes(const std::vector<pid_t> &pids) {
  return pids.size() == 1 ? "a process" : fmt::format("{} processes", pids.size());
}

void send(int signal, const std::vector<pid_t> &pids) {
  for (pid_t pid : pids) ::kill(pid, signal);
}

class Job {
 public:
  Job(const RunOptions &options, const Config &config, const Installation &installation, Plan plan, Signals signals,
      RunDirectory folder, std::optional<LogFolder> log)
      : options_(options),
        config_(config),
        plan_(std::move(plan)),
        signals_(std::move(signals)),
        other_nodes_(options.for_other_jobs || plan_.is_elsewhere() ||
                     may_use_other_nodes(options.command, Environment::current())),
        installation_(installation),
        preload_library_(installation.preload_library),
        // A file that is left to native PnetCDF is no stream.
        mode_(chosen(options.mode, "staging.mode", options.stream.empty() ? "auto" : "caching")),
        memory_(chosen(options.memory, "staging.memory", default_memory_of_each(plan_.servers_of_a_node()))),
        // A network that nobody will use costs a third of a second to look for.
        listen_(config.get("staging.listen") || other_nodes_ ? "" : "shm"),
        durability_(chosen(options.durability, "durability", kDefaultDurability)),
        log_base_(chosen(options.log_base, "staging.log", "")),
        credential_(Credential::generate().to_hex()),
        folders_(std::move(folder), std::move(log), other_nodes_, credential_) {}

  int execute();

 private:
  std::string chosen(const std::string &flag, const char *setting, const std::string &otherwise) const {
    return flag.empty() ? config_.get_or(setting, otherwise) : flag;
  }

  enum class Phase { kStarting, kRunning, kDraining };

  void fit_servers();
  Status start_servers();
  Status start_children();
  Status expect_agents();
  Status launch_agents();
  std::vector<std::string> agent_words(bool is_rank) const;
  Status await_urls();
  Status await_all();
  std::optional<Error> why_no_start() const;
  Error too_late() const;
  Result<SpawnOptions> prepare_program() const;
  Status start_program(SpawnOptions program);
  Status start_streams();
  void end_streams();
  Status stage(SpawnOptions &program) const;
  Status add_embedded(SpawnOptions &program, std::vector<std::string> &carried) const;
  Status add_services(SpawnOptions &program) const;
  void await_program();
  void check_start();
  /// The servers are ranks of the program's job; not where there are none.
  bool is_mpmd() const { return options_.mpmd && agents_ != nullptr; }
  void check_program();
  double unseen_s();
  bool any_of_program() const;
  void end_program(Error why);
  void await_end();
  void end_launcher();
  bool is_broken() const;  ///< the program was ended, or is to end
  void end_stragglers();
  std::vector<pid_t> stragglers() const;
  void drain();
  void note_placement();
  void note_restart(int index);
  void tell_restarts(int index);
  int tell();
  int write_json(const RunRecord &record, int code) const;

  /// Waits for at most a turn, then handles one signal, the notes that have come, and the children that have ended.
  void turn(milliseconds at_most = kTurn);
  void on_signal(const Signal &signal);
  void on_signal_while_running(const Signal &signal);
  void on_signal_in_drain(const Signal &signal);
  void on_child_ended(pid_t pid, int wait_status);
  void reap();
  void look_at_servers();

  const RunOptions &options_;
  const Config &config_;
  const Plan plan_;
  Signals signals_;
  std::vector<pid_t> earlier_children_ = children();  ///< of whoever became this process
  const bool had_children_ = !earlier_children_.empty();
  const bool other_nodes_;  ///< the program may use others than this one
  int server_count_ = static_cast<int>(plan_.placement.servers.size());
  int embedded_count_ = 0;  ///< servers that each MPI job of the program has in its processes, instead
  int interrupts_ = 0;
  std::string why_no_servers_;
  const Installation &installation_;
  std::string preload_library_, mode_, memory_, listen_, durability_, log_base_, credential_;
  RunFolders folders_;
  std::unique_ptr<Servers> servers_;
  AgentServers *agents_ = nullptr;  ///< the same, if they are started by a launcher
  std::set<int> told_ends_;         ///< servers whose end the user knows of
  std::map<int, std::size_t> told_restarts_;
  std::optional<Notes> notes_;
  std::optional<FileStreams> streams_;
  std::optional<Error> start_error_;            ///< a server that was to start with the program did not
  std::optional<StartClock> start_;             ///< from when the servers are being started
  Clock::time_point last_seen_ = Clock::now();  ///< when this node had a process of the program
  Deadline naming_ = Deadline::never();         ///< when to say what is still on its way
  RunRecord record_;
  std::optional<int> program_status_;
  pid_t program_ = -1;
  int stop_signal_ = 0;  ///< what ended the start
  Phase phase_ = Phase::kStarting;
  ProgressLine line_{options_.quiet};
  bool is_over_early_ = false;  ///< the program has done with MPI, and its job waits for the servers to end
  bool gave_up_ = false;
};

int Job::execute() {
  const auto start_timeout = launch::start_timeout(config_);
  if (!start_timeout) {
    say("error: " + start_timeout.error().message);
    return 1;
  }
  start_.emplace(*start_timeout);
  record_.command = options_.command;
  record_.mode = mode_;
  fit_servers();
  record_.memory = memory_;
  record_.durability = durability_;
  record_.servers = server_count_ + embedded_count_;
  preload_library_ = folders_.preloadable(preload_library_);
  if (auto notes = Notes::open()) notes_.emplace(std::move(*notes));
  if (auto started = start_servers(); !started) {
    if (stop_signal_) return 128 + stop_signal_;
    say("error: " + started.error().message);
    return 1;
  }
  if (auto started = start_streams(); !started) {
    say("error: " + started.error().message);
    return 1;
  }
  auto program = prepare_program();
  if (!program) {
    say("error: " + program.error().message);
    return 1;
  }
  const auto start = Clock::now();
  if (auto started = start_program(*std::move(program)); !started) {
    say("error: " + started.error().message);
    return started.code() == Code::kNotFound ? 127 : 126;
  }
  await_program();
  record_.program_s = seconds_since(start);
  if (!is_over_early_) end_stragglers();
  if (notes_) notes_->take();
  if (notes_) record_.notes = notes_->sentences();
  if (!why_no_servers_.empty()) record_.notes.insert(record_.notes.begin(), why_no_servers_);
  record_.preload_library = preload_library_;
  const auto drain_start = Clock::now();
  drain();
  record_.drain_s = seconds_since(drain_start);
  end_streams();
  note_placement();
  record_.start_s = start_->took_s();
  if (is_over_early_) await_end();
  record_.program_exit_code = exit_code_of(*program_status_);
  if (start_error_) return 1;
  return tell();
}

// Where servers cannot work, the program runs without.
void Job::fit_servers() {
  const auto most = memory_within_limits();
  if (const auto wanted = parse_size(memory_); wanted && *wanted > most)
    memory_ = fmt::format("{}M", most / kLeastMemory * (kLeastMemory >> 20));
  if (most < kLeastMemory)
    why_no_servers_ =
        "the limits on address space, data or files (ulimit -v, -d, -f) have no room for a staging server";
  if (::access("/proc/self/fd", X_OK) != 0)
    why_no_servers_ = "/proc is not mounted, by which staging servers open files";
  if (!why_no_servers_.empty()) server_count_ = 0;
  if (options_.embedded) embedded_count_ = std::exchange(server_count_, 0);
}

// --- start -----------------------------------------------------------------------------------------------------------

Status Job::start_servers() {
  if (server_count_ > 0 && options_.mpmd) return expect_agents();
  if (server_count_ > 0 && plan_.is_elsewhere()) {
    if (auto launched = launch_agents(); !launched) return launched;
    return await_urls();
  }
  if (auto started = start_children(); !started) return started;
  return await_urls();
}

Status Job::start_children() {
  ServerOptions options;
  options.program = installation_.nessied;
  options.count = options.of = server_count_;
  options.mode = mode_;
  options.memory = memory_;
  options.durability = durability_;
  options.log_folder = folders_.log();
  options.patience = start_->patience();
  options.before_restart = [this](int index) { note_restart(index); };
  options.credential = credential_;
  options.board_directory = folders_.open();
  for (const auto &place : plan_.placement.servers) options.cores.push_back(place.cores);
  if (!listen_.empty()) options.arguments = {"--listen", listen_};
  auto servers = ChildServers::start(std::move(options), folders_.own(), signals_);
  if (!servers) return servers.error();
  servers_ = *std::move(servers);
  return {};
}

/// They come with the program, which looks for the boards at its beginning.
Status Job::expect_agents() {
  for (int index = 0; index < server_count_; ++index)
    if (plan_.placement.servers[static_cast<std::size_t>(index)].here)
      (void)staging::Board::prepare(
          fmt::format("{}/board.{}", folders_.open(), index));  // without, nobody waits for files
  auto servers = AgentServers::open({config_, split(listen_, ","), credential_, server_count_, folders_.own().path(),
                                     folders_.open(), [this](int index) { note_restart(index); }});
  if (!servers) return servers.error();
  agents_ = servers->get();
  servers_ = *std::move(servers);
  return {};
}

/// In a job of their own, whose launcher is out of the terminal's reach.
Status Job::launch_agents() {
  if (auto expected = expect_agents(); !expected) return expected;
  SpawnOptions launcher;
  launcher.environment = Environment::current();
  launcher.environment.set("NESSIE_CREDENTIAL", credential_);
  auto words = agents_job(plan_.placement.servers, agent_words(false), options_.command, folders_.own().path(),
                          launcher.environment);
  if (!words) return words.error();
  launcher.command = *std::move(words);
  carry_to_other_nodes({"NESSIE_CREDENTIAL"}, launcher.command, launcher.environment);
  launcher.own_process_group = launcher.stdout_to_stderr = true;
  launcher.death_signal = SIGTERM;
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  launcher.stdin_fd = nothing.get();
  return agents_->launch(std::move(launcher), signals_);
}

std::vector<std::string> Job::agent_words(bool is_rank) const {
  std::error_code ignored;
  const auto spill = config_.get_or("staging.spill", "");
  return agent_command(own_path(), {agents_->url(), server_count_, mode_, memory_, durability_, log_base_,
                                    spill.empty() ? spill : std::filesystem::absolute(spill, ignored).string(),
                                    config_.get_or("staging.fail_fast", ""), config_.get_or("staging.read_back", ""),
                                    folders_.open(), listen_, cores_by_index(plan_.placement.servers), is_rank});
}

Status Job::await_urls() {
  auto status = await_all();
  line_.hide();
  start_->note(servers_->listening());
  return status;
}

Status Job::await_all() {
  int shown = -1;
  for (servers_->look(); !servers_->all_listen(); servers_->look()) {
    turn(milliseconds(1));
    if (stop_signal_) return Error{Code::kCancelled, "interrupted"};
    if (auto error = why_no_start()) return *error;
    start_->note(servers_->listening());
    if (start_->is_too_late()) return too_late();
    if (start_->elapsed_s() > kWorthALine && std::exchange(shown, servers_->listening()) != servers_->listening())
      line_.show(fmt::format("starting: {} of {} servers", servers_->listening(), servers_->count()));
  }
  return {};
}

std::optional<Error> Job::why_no_start() const {
  for (int index = 0; index < servers_->count(); ++index)
    if (!servers_->running(index))
      return Error{Code::kIo, fmt::format("staging server {} {} while it started; it says why above", index,
                                          servers_->how_it_ended(index))};
  if (const auto why = servers_->why_not_all(); !why.empty()) return Error{Code::kIo, why};
  return std::nullopt;
}

Error Job::too_late() const {
  return {
      Code::kTimedOut,
      fmt::format("{} of {} staging servers have started, and no further one within {} s; what they "
                  "say is above (NESSIE_RUN_START_TIMEOUT gives them longer)",
                  servers_->listening(), servers_->count(), static_cast<double>(start_->patience().count()) / 1000)};
}

Status Job::stage(SpawnOptions &program) const {
  const auto outer_boards = program.environment.get(NESSIE_BOARD_VARIABLE).value_or("");
  const int own_boards = embedded_count_ > 0 ? prepare_boards(folders_.open(), embedded_count_) : server_count_;
  const int boards = own_boards + link_outer_boards(outer_boards, own_boards, folders_.open());
  auto urls = is_mpmd() ? std::vector<std::string>{agents_->place()} : servers_->urls();
  if (embedded_count_ > 0) urls = {embedded_servers(embedded_count_)};
  put_in_front({preload_library_, urls, credential_, notes_ ? notes_->address() : "",
                fmt::format("{} {}", boards, folders_.open())},
               program.environment);
  std::vector<std::string> carried = {"NESSIE_CREDENTIAL", "NESSIE_SERVERS", "LD_PRELOAD"};
  if (embedded_count_ > 0)
    if (auto status = add_embedded(program, carried); !status.ok()) return status;
  if (options_.mpmd) {
    if (auto status = add_services(program); !status.ok()) return status;
    carried.emplace_back("NESSIE_COMMSPLITTER");
  }
  if (other_nodes_) carry_to_other_nodes(carried, program.command, program.environment);
  return {};
}

Status Job::add_embedded(SpawnOptions &program, std::vector<std::string> &carried) const {
  const auto library = find_embedded_library();
  if (!library) return library.error();
  const auto names = put_servers_in({folders_.preloadable(*library), mode_, memory_, listen_, folders_.own().path()},
                                    program.environment);
  carried.insert(carried.end(), names.begin(), names.end());
  return {};
}

Status Job::add_services(SpawnOptions &program) const {
  const auto installation = MpmdInstallation::find();
  if (!installation) return installation.error();
  if (const auto word = preload_in(program.command); !word.empty() && word.find("libcommsplitter") == std::string::npos)
    return Error{Code::kUnsupported,
                 fmt::format("with --mpmd '{}' would leave the program without CommSplitter: add ':{}' to it, or run "
                             "without --mpmd",
                             word, installation->commsplitter)};
  auto service = agent_words(true);
  service.insert(service.begin(), installation->rank);
  auto places = plan_.placement.servers;
  for (auto &place : places)
    if (!other_nodes_) place.host.clear();  // the job names none
  const auto ask = [this](const std::vector<std::string> &words) {
    SpawnOptions options;
    options.command = words;
    options.environment = Environment::current();
    return output_of(std::move(options), Deadline::in(start_->patience()), &signals_);
  };
  auto command = with_services(program.command, places, service, folders_.own().path(), program.environment, ask);
  if (!command) return command.error();
  program.command = *std::move(command);
  split_world(installation->commsplitter, program.environment);
  return {};
}

Result<SpawnOptions> Job::prepare_program() const {
  SpawnOptions program;
  program.command = plan_.command;
  program.environment = Environment::current();
  program.death_signal = SIGTERM;
  if (const auto warning = mismatch(options_.command, program.environment)) say("warning: " + *warning);
  if (server_count_ + embedded_count_ > 0)
    if (auto staged = stage(program); !staged) return staged.error();
  if (const auto *in_memory = folders_.in_memory()) keep_shared_memory_in(*in_memory, program.environment);
  return program;
}

Status Job::start_program(SpawnOptions program) {
  auto pid = spawn(std::move(program), signals_);
  if (!pid) return pid.error();
  program_ = *pid;
  phase_ = Phase::kRunning;
  if (!is_stream(options_.json_file, STDOUT_FILENO)) let_go_of_streams();
  return {};
}

/// Before the program, so that who waits for its first file finds somebody.
Status Job::start_streams() {
  if (options_.stream.empty() || server_count_ == 0) return {};
  const auto beside = std::filesystem::path(installation_.nessied).parent_path() / "nessie-streams";
  return keep(FileStreams::start({beside.string(), options_.stream, servers_->urls(), credential_}, signals_),
              streams_);
}

void Job::end_streams() {
  if (!streams_) return;
  const auto linger = config_.get_duration("run.stream_linger", kDefaultStreamLinger);
  streams_->end(
      linger.ok() ? *linger : kDefaultStreamLinger, [this] { turn(); }, [this] { return gave_up_; });
}

// --- while the program runs ------------------------------------------------------------------------------------------

void Job::turn(milliseconds at_most) {
  const std::vector<int> news = {notes_ ? notes_->fd() : -1, agents_ ? agents_->fd() : -1};
  const auto due = servers_ ? servers_->due() : Deadline::never();
  if (const auto signal = signals_.wait(Deadline::in(at_most).earlier(due), news)) on_signal(*signal);
  if (notes_) notes_->take();
  reap();
  look_at_servers();
}

void Job::reap() {
  int wait_status = 0;
  while (true) {
    const pid_t pid = waitpid(-1, &wait_status, WNOHANG);
    if (pid <= 0) return;
    on_child_ended(pid, wait_status);
  }
}

void Job::on_child_ended(pid_t pid, int wait_status) {
  if (pid == program_) program_status_ = wait_status;
  std::erase(earlier_children_, pid);
  if (streams_ && streams_->note_exit(pid))
    say("warning: nessie-streams " + describe_wait_status(wait_status) + ": nobody can follow the program's files");
  if (servers_) servers_->note_exit(pid, wait_status);
}

void Job::look_at_servers() {
  if (!servers_) return;
  servers_->look();
  for (int index = 0; index < servers_->count(); ++index) {
    tell_restarts(index);
    if (phase_ != Phase::kRunning || is_over_early_ || servers_->running(index)) continue;
    if (!told_ends_.insert(index).second) continue;
    say(fmt::format("error: staging server {} {}; what it held and is not in the files is listed at the end", index,
                    servers_->how_it_ended(index)));
  }
}

void Job::tell_restarts(int index) {
  const auto &deaths = servers_->deaths(index);
  for (auto &told = told_restarts_[index]; told < deaths.size(); ++told) {
    line_.hide();
    say(fmt::format("staging server {} {}; it was started again and goes on from its log", index, deaths[told]));
  }
}

/// The next server in its place begins a ledger of its own.
void Job::note_restart(int index) {
  add_restarted(index, read_remains(folders_.own().path(), folders_.open(), index), record_);
}

void Job::on_signal(const Signal &signal) {
  if (signal.number == SIGCHLD) return;
  if (phase_ == Phase::kStarting && !signal.was_ignored && ends_by_default(signal.number)) stop_signal_ = signal.number;
  if (phase_ == Phase::kDraining) on_signal_in_drain(signal);
  if (phase_ == Phase::kRunning) on_signal_while_running(signal);
  if (stops_by_default(signal.number)) signals_.stop(signal.number);
}

void Job::on_signal_while_running(const Signal &signal) {
  const bool ends = !signal.was_ignored && (signal.number == SIGINT || signal.number == SIGTERM);
  if (ends) interrupts_ = 1, naming_ = Deadline::in(kWorthNaming);
  if (signal.from_terminal) return;
  if (!program_status_) return send(signal.number, {program_});
  if (ends) send(signal.number, stragglers());
}

void Job::on_signal_in_drain(const Signal &signal) {
  if (signal.number != SIGINT && signal.number != SIGTERM && signal.number != SIGQUIT) return;
  if (signal.repeated || signal.was_ignored) return;
  ++interrupts_;
  naming_ = Deadline::in(kWorthNaming);
  gave_up_ = interrupts_ > 1 || signal.number == SIGQUIT;
  if (gave_up_) return;
  line_.hide();
  say("the program's data are still on their way to the files; once more gives them up");
}

void Job::await_program() {
  while (!program_status_ && !is_over_early_) {
    turn(seconds(1));
    is_over_early_ = !program_status_ && servers_->is_program_over();
    if (is_mpmd() && !start_error_) check_start();
    if (is_mpmd() && !agents_->has_program_begun() && !start_error_) check_program();
  }
  if (is_mpmd() && !agents_->has_program_begun() && !start_error_)
    why_no_servers_ = servers_->all_listen() ? kNeverBegan : kNeverStarted;
}

/// Servers that are ranks of the program's job start while it runs. Without all of them it cannot go on as meant.
void Job::check_start() {
  start_->note(servers_->listening());
  if (servers_->all_listen()) return;
  if (auto error = start_->is_too_late() ? too_late() : why_no_start()) end_program(*std::move(error));
}

/// A program without MPI ends, and leaves the services waiting for it.
void Job::check_program() {
  if (other_nodes_ || program_status_ || !agents_->all_listen() || unseen_s() < kUnseen) return;
  end_program({Code::kUnsupported, kNeverBegan});
}

/// How long this node has had no process of the program.
double Job::unseen_s() {
  if (any_of_program()) last_seen_ = Clock::now();
  return seconds_since(last_seen_);
}

/// Whether any process of this node may be one of the program's.
bool Job::any_of_program() const {
  return std::ranges::any_of(processes(), [this](pid_t pid) {
    const auto name = command_name(pid);
    return pid != ::getpid() && pid != program_ && !is_launcher_name(name) &&
           !std::ranges::count(std::array{"nessie", "nessied", "nessie-rank", "nessie-janitor"}, name) &&
           carries_credential(pid, credential_);
  });
}

/// Without servers, or without a program, there is no use in the rest.
void Job::end_program(Error why) {
  start_error_ = std::move(why);
  say("error: " + start_error_->message);
  agents_->give_up(start_error_->message);
  send(SIGTERM, {program_});
}

/// The program's job has waited for the servers to end.
void Job::await_end() {
  phase_ = Phase::kRunning;
  last_seen_ = Clock::now();
  while (!program_status_) {
    turn(seconds(1));
    end_launcher();
  }
  end_stragglers();
}

/// A launcher that was told to end its job now and then waits for processes that are gone.
void Job::end_launcher() {
  if (other_nodes_ || program_status_) return;
  const auto unseen = unseen_s();
  if (unseen > kPatienceWithLauncher) send(unseen > 2 * kPatienceWithLauncher ? SIGKILL : SIGTERM, {program_});
}

// Children that were there before are not the program's, nor are those that they leave behind.
std::vector<pid_t> Job::stragglers() const {
  auto found = children();
  std::erase_if(found, [this](pid_t pid) {
    return servers_->owns(pid) || pid == folders_.janitor() || (streams_ && streams_->owns(pid)) ||
           std::ranges::count(earlier_children_, pid) > 0 || (had_children_ && !carries_credential(pid, credential_));
  });
  return found;
}

bool Job::is_broken() const { return WIFSIGNALED(*program_status_) || interrupts_ > 0; }

// What the program left behind may still write; but it must not stay for ever.
void Job::end_stragglers() {
  const auto linger = config_.get_duration("run.linger", kDefaultLinger);
  auto terminate = Deadline::in(linger ? *linger : milliseconds(1000));
  const auto worth_a_word = Deadline::in(milliseconds(1000));  // a launcher's helper ends in less
  bool told = false, terminated = false;
  for (auto left = stragglers(); !left.empty(); left = stragglers()) {
    if (is_broken()) terminate = terminate.earlier(Deadline::in(milliseconds(1000)));
    if (worth_a_word.passed() && !std::exchange(told, true))
      say(fmt::format("waiting for {} that the program left behind", count_processes(left)));
    if (terminate.passed() && !std::exchange(terminated, true)) send(SIGTERM, left);
    const auto kill = Deadline::at(terminate.when() + kSignalGrace);
    if (kill.passed()) send(SIGKILL, left);
    if (Deadline::at(kill.when() + kSignalGrace).passed())
      return say(fmt::format("warning: {} that the program left behind cannot be ended", count_processes(left)));
    turn();
  }
}

// --- end -------------------------------------------------------------------------------------------------------------

void Job::drain() {
  phase_ = Phase::kDraining;
  raise_limits();  // those that it was started with were the program's as well
  RunDrain({.config = config_,
            .credential = credential_,
            .servers = *servers_,
            .folder = folders_.own().path(),
            .board_folder = folders_.open(),
            .line = line_,
            .naming = naming_,
            .turn = [this](milliseconds at_most) { turn(at_most); },
            .has_given_up = [this] { return gave_up_; },
            .is_left_alone = [this] { return is_mpmd() && program_status_; }})
      .finish(record_);
  if (embedded_count_ > 0) collect_from(folders_.own().path(), folders_.open(), record_);
  record_.kept_log = folders_.remove_log();
}

void Job::note_placement() {
  auto &placement = record_.placement;
  placement.place = options_.place.empty() ? "near" : options_.place;
  placement.started = embedded_count_ > 0 ? "embedded" : is_mpmd() ? "mpmd" : agents_ != nullptr ? "launcher" : "child";
  const auto urls = servers_->urls();
  for (std::size_t i = 0; i < urls.size(); ++i)
    placement.servers.push_back({servers_->host(static_cast<int>(i)), urls[i], plan_.placement.servers[i].cores,
                                 servers_->deaths(static_cast<int>(i))});
}

int Job::tell() {
  const int code = exit_code(record_);
  if (!options_.quiet) write_to_stderr(describe_work(record_));
  write_to_stderr(describe_trouble(record_));
  return options_.json_file.empty() ? code : write_json(record_, code);
}

int Job::write_json(const RunRecord &record, int code) const {
  const auto written = write_output(options_.json_file, to_json(record).dump(2) + "\n");
  if (written) return code;
  say("error: " + written.error().message);
  return code == 0 ? 1 : code;
}

/// As children of this process.
bool has_servers_here(const RunOptions &options, const Plan &plan) {
  return !options.embedded && !options.mpmd && !plan.is_elsewhere();
}

Result<LogFolder> choose_log_folder(const RunOptions &options, const Config &config) {
  const auto said = [&](const std::string &flag, const char *setting) {
    return flag.empty() ? config.get_or(setting, "") : flag;
  };
  return LogFolder::choose(said(options.log_base, "staging.log"), said(options.durability, "durability"));
}

}  // namespace

int run(const RunOptions &options) {
  nessie::join_asymmetric_fences();  // before there are threads
  std::optional<Config> config;
  std::optional<Installation> installation;
  std::optional<Signals> signals;
  std::optional<RunDirectory> folder;
  std::optional<LogFolder> log;
  std::optional<Plan> plan;
  Status ready = keep(Config::load(), config);
  if (ready) ready = keep(make_plan(options, Environment::current()), plan);
  if (ready && options.dry_run) return print(*plan, options);
  if (ready) ready = keep(Installation::find(), installation);
  if (ready) ready = keep(Signals::open(), signals);
  if (ready) ready = keep(RunDirectory::make(), folder);
  if (ready && has_servers_here(options, *plan)) ready = keep(choose_log_folder(options, *config), log);
  if (!ready) {
    say("error: " + ready.error().message);
    return 1;
  }
  become_reaper();
  for (const auto &warning : plan->placement.warnings) say("warning: " + warning);
  return Job(options, *config, *installation, *std::move(plan), std::move(*signals), std::move(*folder), std::move(log))
      .execute();
}

}  // namespace nessie::cli
