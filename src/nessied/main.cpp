// SPDX-License-Identifier: BSD-3-Clause
// nessied: one process that hosts services, in whatever composition its user asks for. docs/hosting.md.
#include "composition.hpp"
#include "module.hpp"
#include "watcher.hpp"

#include <nessie/module.h>
#include <base/capabilities.hpp>
#include <base/descriptors.hpp>
#include <base/fence.hpp>
#include <base/log.hpp>
#include <nssi/discovery.hpp>
#include <service/host.hpp>
#include <services/discovery/contact/schemes.hpp>
#include <services/discovery/directory/server/server.hpp>
#include <services/staging/server/provider.hpp>
#include <services/streams/server/provider.hpp>
#include <services/streams/server/server.hpp>
#include <services/streams/sinks/sinks.hpp>
#include <services/transfer/server/server.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

namespace {

namespace log = nessie::log;
using nessie::Code;
using nessie::Config;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::service::Host;
using nessie::streams::sinks::Sinks;
using nessied::Step;

constexpr std::chrono::seconds kAnnounce{10};

constexpr const char *kIntroduction =
    "Hosts services in one process: staging, streams, directory, transfer, and those of your own modules.";
constexpr const char *kFooter =
    "NESSIE_CREDENTIAL holds the job's credential. SIGTERM and SIGINT: finish what was acknowledged, answer what was\n"
    "accepted, and exit; asked again, at once, unless data would be lost. SIGHUP: read the file that NESSIE_CONFIG "
    "names\n"
    "anew. All settings: docs/configuration.md. Compositions and modules: docs/hosting.md.\n\n"
    "Examples:\n"
    "  nessied --services directory --announce file:job.contact\n"
    "  nessied --services staging,transfer --listen shm,tcp --memory 2G\n"
    "  nessied --config job.toml --check";

struct Options {
  std::vector<std::string> services, modules, announce, settings;
  std::string config, listen;
  bool check = false;
  std::optional<std::uint32_t> provider;
  int parent_fd = -1;  ///< at its end of file the process ends; -1: none
};

Error bad(const std::string &message) { return {Code::kInvalidArgument, message + "; see nessied --help"}; }

/// A flag that is a short way to say --set.
void add_setting(CLI::App &app, Options &options, const char *flag, const std::string &key, const char *text) {
  app.add_option_function<std::string>(
         flag, [&options, key](const std::string &value) { options.settings.push_back(key + "=" + value); }, text)
      ->take_last();
}

/// The name under which it was called.
std::string_view name_of(const char *program) {
  const std::string_view path(program);
  return path.substr(path.rfind('/') + 1);
}

void describe(CLI::App &app, Options &options, bool is_for_streams) {
  const std::string service = is_for_streams ? "streams" : "staging";
  app.footer(kFooter);
  app.set_version_flag("--version", "nessied " NESSIE_MODULE_VERSION, "Print the version, which modules are built for");
  app.add_option("-s,--services", options.services, "Types of providers, one of each: staging,directory,transfer")
      ->delimiter(',');
  app.add_option("-c,--config", options.config, "TOML file with [[provider]] and [[pool]] tables, and settings")
      ->check([](const std::string &path) { return path.empty() ? "it names no file" : ""; });
  app.add_flag("--check", options.check, "Say what would be started, and start nothing");
  app.add_option("-m,--module", options.modules, "Shared object with a type of provider; may be said again and again");
  app.add_option("-a,--announce", options.announce,
                 "Where clients find it: file:PATH, pmix:NAME or dir:NAME; may be said again and again");
  app.add_option_function<std::string>(
      "--contact", [&](const std::string &path) { options.announce.push_back("file:" + path); },
      "The same as --announce file:PATH");
  app.add_option("-l,--listen", options.listen, "Transports to listen on, e.g. shm,tcp (all that this machine has)");
  app.add_option("--set", options.settings, "A setting, as staging.timeout=10s; may be said again and again");
  app.add_option(
      "--parent", options.parent_fd,
      "End at the end of file of this descriptor, which whoever has started this keeps open; until then signals\n"
      "are for them");
  add_setting(app, options, "--mode", "staging.mode",
              "When the staging service answers a write: auto, caching, direct");
  add_setting(app, options, "--memory", service + ".memory",
              "Memory for data of programs, of staging (as nessie-streams: of streams), e.g. 2G");
  add_setting(app, options, "--name", "streams.name",
              "Streams: the name by which clients on this node find the servers");
  add_setting(
      app, options, "--durability", "durability",
      "Staging: what a file survives that says nothing else: memory, replicated, logged, durable; before it, for\n"
      "files whose names match, *.rst=logged");
  add_setting(app, options, "--log", service + ".log", "The folder in which it keeps its log, as server.N");
  add_setting(app, options, "--index", service + ".index", "Which server this is (its rank)");
  add_setting(app, options, "--servers", service + ".servers", "How many there are (as many as processes)");
  add_setting(app, options, "--run-dir", "staging.run_dir", "Staging: where server.N.url, .ledger and .report go");
  add_setting(app, options, "--spill", "staging.spill", "Staging: a folder for what memory has no room for");
  add_setting(app, options, "--board-dir", "staging.board_dir",
              "Staging: where board.N goes, by which others see which files are not complete yet");
  add_setting(app, options, "--threads", "transfer.threads",
              "Transfer: that make and check arrays of more than a piece");
  add_setting(app, options, "--piece", "transfer.piece", "Transfer: how much of an array moves at once, e.g. 512K");
  add_setting(app, options, "--most-encoded", "transfer.most_encoded",
              "Transfer: the most that a read is given encoded");
  app.add_option("--provider", options.provider, "The provider number of the first service")->excludes("--config");
}

/// "nessie-directory" hosts a directory, and so on, if nothing else is said.
std::vector<std::string> services_by_name(const char *program) {
  const auto name = name_of(program);
  for (const char *service : {"directory", "streams", "transfer"})
    if (name == std::string("nessie-") + service) return {service};
  return {"staging"};
}

// --- what is asked for ------------------------------------------------------------------------------------------------

struct Wanted {
  Config config;
  nessied::Composition composition = {};
  std::vector<nessie::ProviderType> types = {};
  std::vector<Step> steps = {};
  std::uint64_t memory_bytes = 0;
};

/// The file that it is, by whatever path; a name without a slash is for the loader to find.
std::string file_of(const std::string &module) {
  std::error_code problem;
  const auto path = std::filesystem::canonical(module, problem);
  return problem || module.find('/') == std::string::npos ? module : path.string();
}

Status load_type(Wanted &wanted, const std::string &path) {
  auto type = nessied::load_module(path);
  if (!type.ok()) return type.error();
  if (std::ranges::count(wanted.types, type->name, &nessie::ProviderType::name) != 0)
    return Error{Code::kExists, fmt::format("{}: there is a type of provider '{}' already", path, type->name)};
  wanted.types.push_back(*std::move(type));
  return {};
}

Status load_types(Wanted &wanted, const Options &options) {
  wanted.types = {staging::provider_type(), streams::Server::type(), directory::Server::type(),
                  transfer::Server::type()};
  std::set<std::string> loaded;
  for (const auto &path : options.modules) {
    loaded.insert(file_of(path));
    if (auto status = load_type(wanted, path); !status.ok()) return status;
  }
  for (const auto &place : wanted.composition.providers) {
    if (place.module.empty() || !loaded.insert(file_of(place.module)).second) continue;
    if (auto status = load_type(wanted, place.module); !status.ok())
      return Error{status.code(), fmt::format("{}: {}", place.at, status.error().message)};
  }
  return {};
}

/// Behind those of the file: flags go first.
Status add_settings(std::vector<nessie::GivenSetting> &settings, const Options &options) {
  for (const auto &each : options.settings) {
    const auto equals = each.find('=');
    if (equals == std::string::npos || equals == 0) return bad(fmt::format("--set takes KEY=VALUE, not '{}'", each));
    settings.push_back({each.substr(0, equals), each.substr(equals + 1)});
  }
  if (!options.listen.empty()) settings.push_back({"listen", options.listen});
  return {};
}

Result<Wanted> understand(const Options &options, const char *program) {
  auto config = Config::load();
  if (!config.ok()) return config.error();
  if (!options.config.empty() && !options.services.empty()) return bad("--services and --config exclude each other");
  Wanted wanted{.config = *std::move(config)};
  if (options.config.empty()) {
    wanted.composition =
        nessied::composition_of(options.services.empty() ? services_by_name(program) : options.services);
    wanted.composition.providers.front().number = options.provider;
  } else {
    auto read = nessied::read_composition(options.config);
    if (!read.ok()) return read.error();
    wanted.composition = *std::move(read);
  }
  if (auto status = load_types(wanted, options); !status.ok()) return status.error();
  if (auto status = add_settings(wanted.composition.settings, options); !status.ok()) return status.error();
  auto steps = nessied::plan(wanted.composition, wanted.types);
  if (!steps.ok()) return steps.error();
  wanted.steps = *std::move(steps);
  for (const auto &setting : wanted.composition.settings) wanted.config.set(setting);
  const auto memory = wanted.config.get_size("memory", 0);
  if (!memory.ok()) return memory.error();
  wanted.memory_bytes = *memory;
  for (const auto &place : options.announce) {
    if (auto status = nessie::service::check_announced(place); !status.ok()) return status.error();
    wanted.composition.announce.push_back(place);
  }
  if (options.config.empty() && options.announce.empty() && name_of(program) == "nessie-streams") {
    auto places = streams::places_to_announce(wanted.config);
    if (!places.ok()) return places.error();
    wanted.composition.announce = *std::move(places);
  }
  return wanted;
}

void print_plan(const Wanted &wanted) {
  for (const auto &step : wanted.steps) {
    std::vector<std::string> uses;
    for (const auto &[role, name] : step.local) uses.push_back(fmt::format("{} {}", role, name));
    for (const auto &[role, it] : step.remote)
      uses.push_back(fmt::format("{} {}, provider {}", role, it.where, it.number));
    fmt::print("{}: {}, provider {}{}{}\n", step.place->name, step.type->name, step.number,
               step.place->pool.empty() ? "" : ", pool " + step.place->pool,
               uses.empty() ? "" : fmt::format(", uses {}", fmt::join(uses, ", ")));
  }
}

// --- the process ------------------------------------------------------------------------------------------------------

/// Transports: what is said of the process, or of the first of its services of which something is said.
std::string listen_of(const Wanted &wanted) {
  if (const auto all = wanted.config.get("listen")) return *all;
  for (const auto &step : wanted.steps)
    if (const auto its = wanted.config.get(step.type->name + ".listen")) return *its;
  return {};
}

Result<nessie::service::HostOptions> host_options(const Wanted &wanted) {
  nessie::service::HostOptions options;
  options.runtime.endpoint.config = wanted.config;
  options.runtime.endpoint.transports = nessie::split(listen_of(wanted), ", ");
  options.runtime.pools = wanted.composition.pools;
  options.runtime.reload_on_hangup = true;
  options.memory_bytes = wanted.memory_bytes;
  std::vector<const nessie::ProviderType *> prepared;
  for (const auto &step : wanted.steps) {
    if (!step.type->prepare || std::ranges::count(prepared, step.type) != 0) continue;
    prepared.push_back(step.type);
    if (auto status = step.type->prepare(wanted.config, options.runtime); !status.ok()) return status.error();
  }
  return options;
}

std::uint32_t number_of(const Wanted &wanted, const std::string &provider) {
  return std::ranges::find(wanted.steps, provider, [](const Step &step) { return step.place->name; })->number;
}

/// Who asks for the end while providers are being started: no further ones are. Who asks again does not wait for the
/// one that is being started, which may wait for somebody: nothing was accepted yet.
class Start {
 public:
  explicit Start(Host &host) : host_(host) {}
  void ask_to_end() {
    const std::lock_guard lock(mutex_);
    if (is_over_) return host_.end();
    if (is_asked_to_end_) std::_Exit(2);
    is_asked_to_end_ = true;
  }
  bool is_asked_to_end() {
    const std::lock_guard lock(mutex_);
    return is_asked_to_end_;
  }
  void is_over() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    if (is_asked_to_end_) host_.end();
  }

 private:
  Host &host_;
  std::mutex mutex_;
  bool is_over_ = false, is_asked_to_end_ = false;
};

Status start_all(Host &host, const Wanted &wanted, Start &start) {
  for (const auto &step : wanted.steps) {
    if (start.is_asked_to_end()) break;
    nessie::service::ProviderPlace place{step.place->name, step.type->name, step.number, step.place->pool, {},
                                         step.remote};
    for (const auto &[name, value, source] : step.place->settings)
      place.settings.push_back({step.type->name + "." + name, value, source});
    for (const auto &[role, name] : step.local) place.uses[role] = {host.runtime().url(), number_of(wanted, name)};
    auto started = host.start(std::move(place), step.type->start);
    if (started.ok()) continue;
    auto error = started.error();
    error.message =
        fmt::format("{}{}: {}", step.place->at.empty() ? "" : step.place->at + ": ", step.place->name, error.message);
    return error;
  }
  start.is_over();
  return {};
}

/// Says where the process is, for as long as what it returns lives; nowhere if it is to end already.
Result<std::vector<nssi::Announcement>> announce(Host &host, const Wanted &wanted, Start &start) {
  const auto &steps = wanted.steps;
  const auto kind = steps.size() == 1 ? steps.front().type->name : std::string("nessied");
  std::vector<nssi::Announcement> announced;
  if (start.is_asked_to_end()) return announced;
  for (const auto &place : wanted.composition.announce) {
    auto each = nssi::announce(host.runtime(), place, {.kind = kind}, Deadline::in(kAnnounce));
    if (!each.ok()) return each.error();
    announced.push_back(*std::move(each));
  }
  return announced;
}

/// What servers of streams hand on by themselves; the first of them does. Null: nothing.
Result<std::unique_ptr<Sinks>> start_sinks(Host &host, const Wanted &wanted) {
  auto rules = nessie::streams::sinks::parse_rules(wanted.config.get_or("streams.sinks", ""));
  if (!rules.ok()) return rules.error();
  const bool has_streams =
      std::ranges::any_of(wanted.steps, [](const Step &step) { return step.type->name == "streams"; });
  if (!has_streams || rules->empty()) return std::unique_ptr<Sinks>();
  const auto is_first = streams::is_first_server(wanted.config);
  if (!is_first.ok()) return is_first.error();
  return *is_first ? Sinks::start(*std::move(rules), host.runtime().url()) : std::unique_ptr<Sinks>();
}

int fail(const Error &error) { return log::error("{}", error.message), 2; }

int serve(const Wanted &wanted, int parent_fd) {
  auto options = host_options(wanted);
  if (!options.ok()) return fail(options.error());
  nessied::prepare_signals(parent_fd >= 0);  // MPI may have installed handlers of its own
  auto host = Host::open(*std::move(options));
  if (!host.ok()) return fail(host.error());
  const auto sinks = start_sinks(**host, wanted);
  if (!sinks.ok()) return fail(sinks.error());
  Start start(**host);
  {
    const auto watcher = nessied::Watcher::start(parent_fd, [&] {
      if (*sinks) (*sinks)->end();  // while the servers that they read from answer
      start.ask_to_end();
    });
    if (!watcher.ok()) return fail(watcher.error());
    if (auto status = start_all(**host, wanted, start); !status.ok()) return fail(status.error());
    const auto announced = announce(**host, wanted, start);
    if (!announced.ok()) return fail(announced.error());
    if (!wanted.config.get("staging.run_dir"))  // where it is in server.N.url
      std::printf("%s\n", (*host)->runtime().url().c_str()), std::fflush(stdout);
    (*host)->run();
  }
  return (*host)->finish();
}

/// What a program may not do must not be done with its data either: the kernel takes the setuid bit from a file that is
/// written, and keeps to quotas, unless the writer has capabilities. A server needs those by which it reaches what it
/// was given: files that it opens anew through their descriptors, memory of other processes, memory of its own that is
/// pinned.
bool give_up_rights() { return nessie::keep_only_capabilities({CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_IPC_LOCK}); }

}  // namespace

int main(int argc, char **argv) {
  nessie::occupy_closed_standard_streams();
  log::set_program("nessied");
  nessie::raise_descriptor_limit();
  nessie::raise_limits();
  if (!give_up_rights()) return log::error("cannot give up capabilities: {}", std::strerror(errno)), 2;
  nessied::prepare_signals(false);
  nessie::join_asymmetric_fences();  // before there are threads
  CLI::App app(kIntroduction, "nessied");
  Options options;
  describe(app, options, name_of(argv[0]) == "nessie-streams");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) { return app.exit(error) == 0 ? 0 : 2; }
  try {
    const auto wanted = understand(options, argv[0]);
    if (!wanted.ok()) return fail(wanted.error());
    if (options.check) return print_plan(*wanted), 0;
    return serve(*wanted, options.parent_fd);
  } catch (const std::exception &error) {  // the C++ library's: no memory, no thread
    return log::error("there is no room for this process: {}", error.what()), 2;
  }
}
