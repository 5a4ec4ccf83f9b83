// SPDX-License-Identifier: BSD-3-Clause
// A program with servers that were there before it, and will be after it.
#include "commands.hpp"

#include "installation.hpp"
#include "notes.hpp"
#include "other_nodes.hpp"
#include "process.hpp"
#include "speech.hpp"
#include "standing.hpp"
#include "summary.hpp"

#include <base/config.hpp>
#include <nnti/transport/transport.hpp>
#include <services/staging/client/client.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

namespace nessie::cli {

namespace {

using Reports = std::vector<staging::ReportResult>;

int fail(const Error &error) { return say_failure("attach", error.message); }

/// The servers, as this process asks them.
class AttachedServers {
 public:
  static Result<AttachedServers> connect(Config config, const Standing &standing) {
    config.set("servers", fmt::format("{}", fmt::join(standing.urls, " ")));
    config.set("credential", standing.credential);
    auto client = staging::Client::connect(config, "");
    if (!client) return client.error();
    return AttachedServers(*std::move(client));
  }

  Result<Reports> report() {
    Reports reports;
    for (int i = 0; i < client_->servers(); ++i) {
      auto report = client_->report(i);
      if (!report) return report.error();
      reports.push_back(*std::move(report));
    }
    return reports;
  }
  /// Returns when what was put before is in the files, of whatever program.
  Status settle() { return client_->settle({}); }

 private:
  explicit AttachedServers(std::unique_ptr<staging::Client> client) : client_(std::move(client)) {}
  std::unique_ptr<staging::Client> client_;
};

/// The program, with whatever signals this process gets passed on to it: its exit code.
int await(pid_t program, Signals &signals, std::optional<Notes> &notes) {
  int wait_status = 0;
  while (::waitpid(program, &wait_status, WNOHANG) != program) {
    const auto signal = signals.wait(Deadline::in(std::chrono::seconds(1)), {notes ? notes->fd() : -1});
    if (notes) notes->take();
    if (signal && signal->number != SIGCHLD && !signal->from_terminal) ::kill(program, signal->number);
    if (signal && stops_by_default(signal->number)) signals.stop(signal->number);
  }
  if (notes) notes->take();
  return exit_code_of(wait_status);
}

/// What has failed since: servers list all failures of their lives, in order.
std::vector<staging::FileReport> new_failures(const Reports &before, const Reports &after) {
  std::vector<staging::FileReport> failures;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto known = i < before.size() ? before[i].failures.size() : 0;
    failures.insert(failures.end(), after[i].failures.begin() + static_cast<std::ptrdiff_t>(known),
                    after[i].failures.end());
  }
  return failures;
}

std::uint64_t written(const Reports &reports) {
  std::uint64_t bytes = 0;
  for (const auto &report : reports) bytes += report.bytes_pulled;
  return bytes;
}

SpawnOptions program_of(const AttachOptions &options, const Standing &standing, const Installation &installation,
                        const std::optional<Notes> &notes) {
  SpawnOptions program;
  program.command = options.command;
  program.environment = Environment::current();
  auto &environment = program.environment;
  const auto urls = fmt::format("{}", fmt::join(standing.urls, " "));
  if (standing.has_directory) environment.set("NESSIE_DIRECTORY", urls);
  if (standing.has_staging) {
    put_in_front({installation.preload_library, standing.urls, standing.credential, notes ? notes->address() : "",
                  standing.boards},
                 environment);
  } else {
    environment.set("NESSIE_SERVERS", urls);
    environment.set("NESSIE_CREDENTIAL", standing.credential);
  }
  if (may_use_other_nodes(options.command, program.environment))
    carry_to_other_nodes({"NESSIE_CREDENTIAL", "NESSIE_SERVERS", "NESSIE_DIRECTORY", "LD_PRELOAD"}, program.command,
                         program.environment);
  program.death_signal = SIGTERM;
  return program;
}

/// What became of what the program wrote; its exit code, or 74 where something is missing.
int tell(const AttachOptions &options, const Standing &standing, AttachedServers &servers, const Reports &before,
         int code) {
  const auto settled = servers.settle();
  const auto after = settled.ok() ? servers.report() : Result<Reports>(settled.error());
  if (!after) {
    say(fmt::format("error: it is not known whether what the program wrote is in its files: {}",
                    after.error().message));
    return code == 0 ? kExitDataLost : code;
  }
  RunRecord record;
  record.lost = new_failures(before, *after);
  record.program_exit_code = code;
  if (!options.quiet)
    say(fmt::format("the program ended with {}; '{}' has staged {} meanwhile, and what was put before is in the files",
                    code, standing.name, format_size(written(*after) - written(before))));
  write_to_stderr(describe_trouble(record));
  return exit_code(record);
}

}  // namespace

int attach(const AttachOptions &options) {
  const auto config = Config::load();
  if (!config) return fail(config.error());
  const auto standing = find_standing(options.name);
  if (!standing) return fail(standing.error());
  const auto installation = Installation::find();
  if (!installation) return fail(installation.error());
  auto signals = Signals::open();
  if (!signals) return fail(signals.error());
  std::optional<Notes> notes;
  if (auto opened = Notes::open()) notes.emplace(*std::move(opened));
  std::optional<AttachedServers> servers;
  Reports before;
  if (standing->has_staging) {
    nnti::prepare_environment();
    auto connected = AttachedServers::connect(*config, *standing);
    if (!connected) return fail(connected.error());
    servers.emplace(*std::move(connected));
    auto report = servers->report();
    if (!report) return fail(report.error());
    before = *std::move(report);
  }
  const auto program = spawn(program_of(options, *standing, *installation, notes), *signals);
  if (!program) return fail(program.error()), program.code() == Code::kNotFound ? 127 : 126;
  const int code = await(*program, *signals, notes);
  for (const auto &sentence : notes ? notes->sentences() : std::vector<std::string>()) say(sentence);
  return servers ? tell(options, *standing, *servers, before, code) : code;
}

}  // namespace nessie::cli
