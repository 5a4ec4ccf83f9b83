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
#include <base/credential.hpp>
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

constexpr const char *kJobVariable = "NESSIE_STAGING_JOB";

int fail(const Error &error) { return say_failure("attach", error.message); }

/// The servers, as this process asks them.
class AttachedServers {
 public:
  static Result<AttachedServers> connect(Config config, const Standing &standing, const std::string &job) {
    config.set("servers", fmt::format("{}", fmt::join(standing.urls, " ")));
    config.set("credential", standing.credential);
    config.set("staging.job", job);
    auto client = staging::Client::connect(config, "");
    if (!client) return client.error();
    return AttachedServers(*std::move(client), job);
  }

  /// What was done for the job.
  Result<Reports> report() {
    Reports reports;
    for (int i = 0; i < client_->servers(); ++i) {
      auto report = client_->report_of(i, job_);
      if (!report) return report.error();
      reports.push_back(*std::move(report));
    }
    return reports;
  }
  /// Returns when what was put before is in the files, of whatever program.
  Status settle() { return client_->settle({}); }

 private:
  AttachedServers(std::unique_ptr<staging::Client> client, std::string job)
      : client_(std::move(client)), job_(std::move(job)) {}
  std::unique_ptr<staging::Client> client_;
  std::string job_;
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

SpawnOptions program_of(const AttachOptions &options, const Standing &standing, const Installation &installation,
                        const std::string &job, const std::optional<Notes> &notes) {
  SpawnOptions program;
  program.command = options.command;
  program.environment = Environment::current();
  auto &environment = program.environment;
  const auto urls = fmt::format("{}", fmt::join(standing.urls, " "));
  if (standing.has_directory) environment.set("NESSIE_DIRECTORY", urls);
  if (standing.has_staging) {
    environment.set(kJobVariable, job);
    put_in_front({installation.preload_library, standing.urls, standing.credential, notes ? notes->address() : "",
                  standing.boards},
                 environment);
  } else {
    environment.set("NESSIE_SERVERS", urls);
    environment.set("NESSIE_CREDENTIAL", standing.credential);
  }
  if (may_use_other_nodes(options.command, program.environment))
    carry_to_other_nodes({"NESSIE_CREDENTIAL", "NESSIE_SERVERS", kJobVariable, "NESSIE_DIRECTORY", "LD_PRELOAD"},
                         program.command, program.environment);
  program.death_signal = SIGTERM;
  return program;
}

/// What became of what the program wrote; its exit code, or 74 where something is missing.
int tell(const AttachOptions &options, const Standing &standing, AttachedServers &servers, int code) {
  const auto settled = servers.settle();
  auto reports = settled.ok() ? servers.report() : Result<Reports>(settled.error());
  if (!reports) {
    say(fmt::format("error: it is not known whether what the program wrote is in its files: {}",
                    reports.error().message));
    return code == 0 ? kExitDataLost : code;
  }
  RunRecord record;
  record.reports = *std::move(reports);
  record.program_exit_code = code;
  if (!options.quiet)
    say(fmt::format("the program ended with {}; '{}' has staged {} of it, and what was put before is in the files",
                    code, standing.name, format_size(add_up(record).all.bytes_pulled)));
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
  const auto job = fmt::format("{:016x}", random_u64());
  if (standing->has_staging) {
    nnti::prepare_environment();
    auto connected = AttachedServers::connect(*config, *standing, job);
    if (!connected) return fail(connected.error());
    servers.emplace(*std::move(connected));
  }
  const auto program = spawn(program_of(options, *standing, *installation, job, notes), *signals);
  if (!program) return fail(program.error()), program.code() == Code::kNotFound ? 127 : 126;
  const int code = await(*program, *signals, notes);
  for (const auto &sentence : notes ? notes->sentences() : std::vector<std::string>()) say(sentence);
  return servers ? tell(options, *standing, *servers, code) : code;
}

}  // namespace nessie::cli
