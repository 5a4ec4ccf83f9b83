// SPDX-License-Identifier: BSD-3-Clause
#include "allocation.hpp"

#include "launcher.hpp"
#include "this_host.hpp"

#include <base/config.hpp>
#include <base/file.hpp>
#include <base/host.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace nessie::cli {

namespace {

int count_in(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::clamp(value, 0, kMostSlots);
}

int count_in(const std::optional<std::string> &text) { return text ? count_in(std::string_view(*text)) : 0; }

template <std::size_t N> bool is_one_of(const std::array<std::string_view, N> &names, std::string_view name) {
  return std::ranges::count(names, name) > 0;
}

// --- hosts -----------------------------------------------------------------------------------------------------------

void mark_this_host(HostList &hosts) {
  for (auto &host : hosts) host.here = is_this_host(host.name);
}

/// A batch script runs on the first host of its job, by whatever name that is called.
void mark_first_host(HostList &hosts) {
  mark_this_host(hosts);
  if (!hosts.empty() && std::ranges::none_of(hosts, &JobHost::here)) hosts.front().here = true;
}

Result<Allocation> told_by(std::string source, HostList hosts) {
  if (hosts.empty()) return Error{Code::kInvalidArgument, fmt::format("{} names no host", source)};
  return Allocation{std::move(hosts), std::move(source)};
}

Result<Allocation> told_by_file(const std::string &source, const std::string &path, HostList (*read)(std::string_view),
                                void (*mark)(HostList &)) {
  const auto text = read_settings_file(path);
  if (!text) return Error{Code::kNotFound, fmt::format("{}: the file {} cannot be read", source, path)};
  auto hosts = read(*text);
  mark(hosts);
  return told_by(source, std::move(hosts));
}

/// What several programs of a command name is the job's together; each may use all slots of its own list.
void join(const HostList &more, HostList &hosts) {
  for (const auto &host : more) {
    const auto known = std::ranges::find(hosts, host.name, &JobHost::name);
    if (known == hosts.end())
      hosts.push_back(host);
    else
      known->slots = std::max(known->slots, host.slots);
  }
}

constexpr std::array<std::string_view, 3> kLists = {"H", "host", "hosts"};
constexpr std::array<std::string_view, 6> kFiles = {"f",           "hostfile", "default-hostfile",
                                                    "machinefile", "rankfile", "rf"};
constexpr std::array<std::string_view, 2> kSlurmLists = {"w", "nodelist"};

/// What the launcher's options of these names say, together.
template <std::size_t N, class Read>
std::optional<Result<Allocation>> told_by_options(const std::vector<LauncherOption> &options,
                                                  const std::array<std::string_view, N> &names, Read read) {
  HostList hosts;
  std::string source;
  for (const auto &option : options) {
    if (!is_one_of(names, option.name)) continue;
    source = (option.name.size() == 1 ? "-" : "--") + option.name;
    auto told = read(source, option.value);
    if (!told) return told;
    join(told->hosts, hosts);
  }
  if (source.empty()) return std::nullopt;
  return told_by(source, std::move(hosts));
}

Result<Allocation> told_by_words(const std::string &source, const std::string &list) {
  auto hosts = read_host_words(list);
  mark_this_host(hosts);
  return told_by(source, std::move(hosts));
}

Result<Allocation> told_by_slurm_words(const std::string &source, const std::string &list) {
  if (list.find('/') != std::string::npos) return told_by_file(source, list, read_repeated_hosts, mark_this_host);
  auto hosts = read_slurm_hosts(list, "");
  if (!hosts) return hosts.error();
  mark_this_host(*hosts);
  return told_by(source, std::move(*hosts));
}

/// A list of hosts chooses among those of files.
std::optional<Result<Allocation>> told_by_launcher(const std::vector<std::string> &command,
                                                   const Environment &environment) {
  const auto options = launcher_options(command, environment);
  const auto launcher = find_launcher(command, environment);
  if (launcher && is_srun(command[*launcher])) return told_by_options(options, kSlurmLists, told_by_slurm_words);
  if (auto told = told_by_options(options, kLists, told_by_words)) return told;
  return told_by_options(options, kFiles, [](const auto &source, const auto &path) {
    return told_by_file(source, path, read_host_file, mark_this_host);
  });
}

std::optional<std::string> any_of(const Environment &environment, const std::string &name, const std::string &older) {
  auto value = environment.get(name);
  return value ? value : environment.get(older);
}

/// A node is told its own name.
std::optional<Result<Allocation>> told_by_slurm(const Environment &environment) {
  const auto list = any_of(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
  const std::string source = "SLURM_JOB_NODELIST";
  if (!list && count_in(environment.get("SLURM_JOB_NUM_NODES")) > 1)
    return Error{Code::kNotFound, "Slurm does not say which hosts this job has: SLURM_JOB_NODELIST is not set"};
  if (!list) return std::nullopt;
  auto counts = environment.get("SLURM_TASKS_PER_NODE");
  if (!counts) counts = environment.get("SLURM_JOB_CPUS_PER_NODE");
  auto hosts = read_slurm_hosts(*list, counts.value_or(""));
  if (!hosts) return hosts.error();
  mark_this_host(*hosts);
  for (auto &host : *hosts) host.here |= host.name == environment.get("SLURMD_NODENAME");
  return told_by(source, std::move(*hosts));
}

using Mark = void (*)(HostList &);
struct HostVariable {
  const char *name;
  HostList (*read)(std::string_view text);
  bool is_file;  ///< its value names one
  Mark mark;
};
constexpr std::array<HostVariable, 8> kVariables = {{
    {"HYDRA_HOST_FILE", read_host_file, true, mark_this_host},
    {"OMPI_MCA_orte_default_hostfile", read_host_file, true, mark_this_host},
    {"PRTE_MCA_prte_default_hostfile", read_host_file, true, mark_this_host},
    {"PBS_NODEFILE", read_repeated_hosts, true, mark_first_host},
    {"LSB_MCPU_HOSTS", read_host_pairs, false, mark_first_host},
    {"LSB_DJOB_HOSTFILE", read_repeated_hosts, true, mark_first_host},
    {"LSB_HOSTS", read_repeated_hosts, false, mark_first_host},
    {"PE_HOSTFILE", read_sge_file, true, mark_first_host},
}};

Result<Allocation> told_by_variable(const HostVariable &variable, const std::string &value) {
  if (variable.is_file) return told_by_file(variable.name, value, variable.read, variable.mark);
  auto hosts = variable.read(value);
  variable.mark(hosts);
  return told_by(variable.name, std::move(hosts));
}

// --- ranks -----------------------------------------------------------------------------------------------------------

/// "ppr:4:node" of Open MPI's --map-by; 0: it says something else.
int per_host_of_map(std::string_view value) {
  const auto parts = split(value, ":");
  return parts.size() >= 3 && parts[0] == "ppr" && parts[2] == "node" ? count_in(std::string_view(parts[1])) : 0;
}

/// Counts of srun's may stand in one word with their option: "-n8".
LauncherOption apart(LauncherOption option, bool of_srun) {
  if (!of_srun || option.name.size() < 2 || option.name.find_first_not_of("0123456789", 1) != std::string::npos)
    return option;
  option.value = option.name.substr(1);
  option.name.resize(1);
  return option;
}

constexpr std::array<std::string_view, 4> kCounts = {"n", "np", "c", "ntasks"};
constexpr std::array<std::string_view, 5> kCountsPerHost = {"ppn", "perhost", "npernode", "N", "ntasks-per-node"};

/// srun takes from its job what it is not told.
void complete_from_slurm(const Environment &environment, Ranks &ranks) {
  if (ranks.count == 0) ranks.count = count_in(any_of(environment, "SLURM_NTASKS", "SLURM_NPROCS"));
  if (ranks.per_host == 0) ranks.per_host = count_in(environment.get("SLURM_NTASKS_PER_NODE"));
}

}  // namespace

std::vector<Result<Allocation>> told_allocations(const std::vector<std::string> &command,
                                                 const Environment &environment) {
  std::vector<Result<Allocation>> told;
  if (auto by_launcher = told_by_launcher(command, environment)) told.push_back(std::move(*by_launcher));
  if (auto by_slurm = told_by_slurm(environment)) told.push_back(std::move(*by_slurm));
  for (const auto &variable : kVariables) {
    const auto value = environment.get(variable.name);
    if (value && !value->empty()) told.push_back(told_by_variable(variable, *value));
  }
  return told;
}

Result<Allocation> find_allocation(const std::vector<std::string> &command, const Environment &environment) {
  auto told = told_allocations(command, environment);
  if (!told.empty()) return std::move(told.front());
  return Allocation{{{host_name(), 0, true}}, ""};
}

bool has_several_components(const Environment &environment) {
  const auto size = environment.get("SLURM_HET_SIZE");
  return size && *size != "1";
}

Ranks find_ranks(const std::vector<std::string> &command, const Environment &environment) {
  Ranks ranks;
  const auto launcher = find_launcher(command, environment);
  if (!launcher) return ranks;
  const bool of_srun = is_srun(command[*launcher]);
  auto uncounted = 1 + std::count(command.begin() + static_cast<std::ptrdiff_t>(*launcher), command.end(), ":");
  for (const auto &given : launcher_options(command, environment)) {
    const auto option = apart(given, of_srun);
    if (is_one_of(kCounts, option.name) && !(of_srun && option.name == "c")) {
      ranks.count = std::min(ranks.count + count_in(std::string_view(option.value)), kMostSlots);
      --uncounted;
    }
    if (is_one_of(kCountsPerHost, option.name) && !(of_srun && option.name == "N"))
      ranks.per_host = count_in(std::string_view(option.value));
    if (option.name == "map-by") ranks.per_host = std::max(ranks.per_host, per_host_of_map(option.value));
  }
  if (uncounted > 0) ranks.count = 0;
  if (of_srun) complete_from_slurm(environment, ranks);
  return ranks;
}

}  // namespace nessie::cli
