// SPDX-License-Identifier: BSD-3-Clause
#include "agent_launch.hpp"

#include "allocation.hpp"
#include "launcher.hpp"

#include <base/file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace nessie::cli {

namespace {

using Words = std::vector<std::string>;

void append(Words &words, const Words &more) { words.insert(words.end(), more.begin(), more.end()); }

/// Options of the program's launcher that say how hosts are reached, and nothing of where processes go.
bool is_about_reach(const LauncherOption &option) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "allow-run-as-root", "prefix",         "noprefix", "launch-agent", "launcher",    "launcher-exec",
      "bootstrap",         "bootstrap-exec", "rmk",      "iface",        "personality", "dvm"};
  static constexpr std::array<std::string_view, 4> kSettings = {"mca", "gmca", "omca", "prtemca"};
  static constexpr std::array<std::string_view, 6> kOfReach = {"plm", "oob", "ras", "routed", "prte_", "orte_"};
  if (std::ranges::count(kNames, option.name) > 0) return true;
  return std::ranges::count(kSettings, option.name) > 0 &&
         std::ranges::any_of(kOfReach, [&](auto begin) { return option.value.starts_with(begin); });
}

Words words_about_reach(const Words &command, const Environment &environment) {
  Words words;
  for (const auto &option : launcher_options(command, environment))
    if (is_about_reach(option))
      words.insert(words.end(), command.begin() + static_cast<std::ptrdiff_t>(option.first),
                   command.begin() + static_cast<std::ptrdiff_t>(option.last) + 1);
  return words;
}

/// A part of Open MPI's command for each place.
Words parts(const std::vector<ServerPlace> &places, const Words &what) {
  Words words;
  for (const auto &place : places) {
    if (!words.empty()) words.emplace_back(":");
    append(words, {"-n", "1"});
    if (!place.host.empty()) append(words, {"--host", place.host});
    append(words, what);
  }
  return words;
}

/// Open MPI has to be told of each of several programs how many processes it has; of one, the slots say it.
Result<Words> with_count(const Words &command, std::size_t launcher, const Environment &environment) {
  const auto ranks = find_ranks(command, environment);
  if (ranks.count > 0 || ranks.per_host > 0 || std::ranges::count(command, ":") > 0) return command;
  const auto told = find_allocation(command, environment);
  if (!told) return told.error();
  int slots = 0;
  for (const auto &host : told->hosts) slots += host.slots;
  if (slots == 0)
    return Error{Code::kInvalidArgument, "--mpmd has to know how many processes the program has: mpiexec -n 8 ./sim"};
  Words words = command;
  const Words count = {"-n", std::to_string(slots)};
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(launcher) + 1, count.begin(), count.end());
  return words;
}

void take_no_slots(Environment &environment) {
  if (!environment.get("OMPI_MCA_rmaps_base_oversubscribe")) environment.set("OMPI_MCA_rmaps_base_oversubscribe", "1");
  if (!environment.get("PRTE_MCA_rmaps_default_mapping_policy"))
    environment.set("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
}

/// Beside the program's job: Open MPI starts its daemons by srun, which would give the first one's the nodes alone.
void share_nodes_of_slurm(Environment &environment) {
  for (const char *name : {"OMPI_MCA_plm_slurm_args", "PRTE_MCA_plm_slurm_args"})
    environment.append(name, "--overlap", ' ');
}

std::string hosts_of(const std::vector<ServerPlace> &places, std::string_view separator) {
  std::string hosts;
  for (const auto &place : places) hosts += (hosts.empty() ? "" : std::string(separator)) + place.host;
  return hosts;
}

/// "b:1,b:1,c:1": Hydra fills hosts in this order.
std::string hosts_with_slots(const std::vector<ServerPlace> &places) { return hosts_of(places, ":1,") + ":1"; }

Result<Words> srun_job(const std::string &srun, const std::vector<ServerPlace> &places, const Words &agent,
                       const std::string &folder, Environment &environment) {
  const auto path = folder + "/agents.hosts";
  if (auto written = write_file(path, hosts_of(places, "\n") + "\n"); !written.ok()) return written.error();
  environment.set("SLURM_HOSTFILE", path);
  Words words = {srun,
                 "--overlap",
                 "--cpu-bind=none",
                 "--mpi=none",
                 "--kill-on-bad-exit=0",
                 "--input=none",
                 "--distribution=arbitrary",
                 fmt::format("--ntasks={}", places.size())};
  append(words, agent);
  return words;
}

/// The launcher's word in the program's command; what a batch job has, if it has none.
std::string launcher_for(const Words &command, const Environment &environment) {
  if (const auto launcher = find_launcher(command, environment)) return command[*launcher];
  const bool has_srun = environment.get("SLURM_JOB_ID") && !find_program("srun", environment).empty();
  return has_srun ? "srun" : "mpiexec";
}

}  // namespace

Result<Words> agents_job(const std::vector<ServerPlace> &places, const Words &agent, const Words &command,
                         const std::string &folder, Environment &environment) {
  const auto launcher = launcher_for(command, environment);
  if (is_srun(launcher)) return srun_job(launcher, places, agent, folder, environment);
  Words words = {launcher};
  append(words, words_about_reach(command, environment));
  switch (flavour_of_launcher(launcher, environment)) {
    case MpiFlavour::kOpenMpi:
      take_no_slots(environment);
      share_nodes_of_slurm(environment);
      append(words, {"--bind-to", "none"});
      append(words, parts(places, agent));
      return words;
    case MpiFlavour::kMpich:
      append(words, {"-bind-to", "none", "-hosts", hosts_with_slots(places), "-n", std::to_string(places.size())});
      append(words, agent);
      return words;
    default: break;
  }
  return Error{
      Code::kUnsupported,
      fmt::format("servers on other hosts are started by srun, or the mpiexec of Open MPI or MPICH; {} is none: "
                  "put `nessie run` before it, without --place",
                  launcher)};
}

Result<Words> with_services(const Words &command, const std::vector<ServerPlace> &places, const Words &service,
                            const std::string &folder, const Environment &environment, const AskCommand &ask) {
  const auto launcher = find_launcher(command, environment);
  if (!launcher)
    return Error{Code::kUnsupported,
                 "--mpmd makes the services ranks of the program's job, so its launcher has to be in the command: "
                 "nessie run --mpmd -- mpiexec -n 8 ./sim"};
  if (is_srun(command[*launcher])) return step_with_services(command, places, service, folder, environment, ask);
  if (flavour_of_launcher(command[*launcher], environment) != MpiFlavour::kOpenMpi)
    return Error{Code::kUnsupported, fmt::format("--mpmd needs srun or the mpiexec of Open MPI, which Nessie is built "
                                                 "for; {} is neither: run without --mpmd",
                                                 command[*launcher])};
  auto words = with_count(command, *launcher, environment);
  if (!words) return words.error();
  words->emplace_back(":");
  append(*words, parts(places, service));
  return words;
}

void split_world(const std::string &commsplitter, Environment &environment) {
  const auto preloaded = environment.get("LD_PRELOAD").value_or("");
  take_no_slots(environment);
  if (preloaded.find("libcommsplitter") != std::string::npos) return;  // by the user, as he wants it
  environment.set("LD_PRELOAD", preloaded.empty() ? commsplitter : commsplitter + ":" + preloaded);
  if (!environment.get("NESSIE_COMMSPLITTER")) environment.set("NESSIE_COMMSPLITTER", "variable:NESSIE_RANK");
}

}  // namespace nessie::cli
