// SPDX-License-Identifier: BSD-3-Clause
#include "keep_apart.hpp"

#include "launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace nessie::cli {

namespace {

using Words = std::vector<std::string>;

bool contains(const HostList &hosts, const std::string &name) {
  return std::ranges::find(hosts, name, &JobHost::name) != hosts.end();
}

std::string joined_names(const HostList &hosts) {
  std::string names;
  for (const auto &host : hosts) names += (names.empty() ? "" : ",") + host.name;
  return names;
}

/// A command that is changed from its end to its beginning, so that what the options say of their places stays true.
class Edited {
 public:
  Edited(Words command, const Environment &environment)
      : options_(launcher_options(command, environment)), words_(std::move(command)) {
    std::ranges::reverse(options_);
  }

  /// The launcher's options of these names, the last one first.
  std::vector<LauncherOption> options(const Words &names) const {
    std::vector<LauncherOption> found;
    for (const auto &option : options_)
      if (std::ranges::count(names, option.name) > 0) found.push_back(option);
    return found;
  }
  void insert(std::size_t place, const Words &more) {
    words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(place), more.begin(), more.end());
  }
  void erase(const LauncherOption &option) {
    const auto begin = words_.begin();
    words_.erase(begin + static_cast<std::ptrdiff_t>(option.first),
                 begin + static_cast<std::ptrdiff_t>(option.last) + 1);
  }
  void give(const LauncherOption &option, const std::string &value) {
    auto &word = words_[option.last];
    word = option.first == option.last ? word.substr(0, word.find('=') + 1) + value : value;
  }
  const Words &words() const { return words_; }

 private:
  std::vector<LauncherOption> options_;
  Words words_;
};

struct Sides {
  const HostList &program, &servers_only;
  int cores;
};

Error nothing_is_left(const std::string &option, const std::string &value) {
  return {Code::kInvalidArgument,
          fmt::format("{} {} names only nodes that are for staging servers: give the program others, or the servers "
                      "other places",
                      option, value)};
}

/// Each program of a command has a --host of its own; a list that stands there already loses the servers' hosts.
Status limit(Edited &command, std::size_t begin, std::size_t end, const Sides &sides) {
  bool is_limited = false;
  for (const auto &option : command.options({"H", "host"})) {
    if (option.first < begin || option.first >= end) continue;
    auto hosts = read_host_words(option.value);
    std::erase_if(hosts, [&](const auto &host) { return contains(sides.servers_only, host.name); });
    if (hosts.empty()) return nothing_is_left("--host", option.value);
    command.give(option, to_host_words(hosts, sides.cores));
    is_limited = true;
  }
  if (!is_limited) command.insert(begin, {"--host", to_host_words(sides.program, sides.cores)});
  return {};
}

/// What `change` does to each of the command's programs, the last one first, of which the words are told.
template <class Change> Status for_each_program(const Edited &command, std::size_t launcher, Change change) {
  auto end = command.words().size();
  for (auto place = end; place-- > launcher;) {
    if (place != launcher && command.words()[place] != ":") continue;
    if (auto changed = change(place + 1, end); !changed) return changed.error();
    end = place;
  }
  return {};
}

Result<Words> for_open_mpi(Edited command, std::size_t launcher, const Sides &sides) {
  const auto limited = for_each_program(
      command, launcher, [&](std::size_t begin, std::size_t end) { return limit(command, begin, end, sides); });
  if (!limited) return limited.error();
  return command.words();
}

/// Hydra has one list for all programs.
Result<Words> for_hydra(Edited command, std::size_t launcher, const Sides &sides) {
  for (const auto &option : command.options({"f", "hostfile", "machinefile", "host", "hosts"})) command.erase(option);
  command.insert(launcher + 1, {"-hosts", to_host_words(sides.program)});
  return command.words();
}

/// Where srun was told which nodes it must use, the servers' are no longer among them.
Status limit_nodelists(Edited &command, const Sides &sides) {
  for (const auto &option : command.options({"w", "nodelist"})) {
    auto hosts = read_slurm_hosts(option.value, "");
    if (!hosts) return hosts.error();
    std::erase_if(*hosts, [&](const auto &host) { return contains(sides.servers_only, host.name); });
    if (hosts->empty()) return nothing_is_left("--nodelist", option.value);
    command.give(option, joined_names(*hosts));
  }
  return {};
}

bool says_how_many_nodes(const Edited &command) {
  if (!command.options({"N", "nodes"}).empty()) return true;
  return std::ranges::any_of(command.words(), [](const auto &word) {  // "-N2"
    return word.size() > 2 && word.starts_with("-N") && word.find_first_not_of("0123456789", 2) == std::string::npos;
  });
}

/// Each program of a step has nodes of its own.
Status exclude(Edited &command, std::size_t begin, std::size_t end, const Sides &sides) {
  for (const auto &option : command.options({"x", "exclude"})) {
    if (option.first < begin || option.first >= end) continue;
    command.give(option, option.value + ',' + joined_names(sides.servers_only));
    return {};
  }
  command.insert(begin, {"--exclude=" + joined_names(sides.servers_only)});
  return {};
}

Result<Words> for_srun(Edited command, std::size_t launcher, const Sides &sides) {
  const bool is_one_program = std::ranges::count(command.words(), ":") == 0;
  const bool must_be_told = is_one_program && !says_how_many_nodes(command);
  if (auto limited = limit_nodelists(command, sides); !limited) return limited.error();
  const auto excluded = for_each_program(
      command, launcher, [&](std::size_t begin, std::size_t end) { return exclude(command, begin, end, sides); });
  if (!excluded) return excluded.error();
  if (must_be_told) command.insert(launcher + 1, {fmt::format("--nodes={}", sides.program.size())});
  return command.words();
}

}  // namespace

Result<Words> keep_apart(const HostList &program, const HostList &servers_only, int cores, const Words &command,
                         const Environment &environment) {
  if (servers_only.empty()) return command;
  const auto launcher = find_launcher(command, environment);
  if (!launcher)
    return Error{
        Code::kUnsupported,
        fmt::format("the program cannot be kept from {}: mpiexec or srun must stand in the command itself, not "
                    "in a script; put `nessie run` before it there",
                    joined_names(servers_only))};
  const Sides sides{program, servers_only, cores};
  const auto &word = command[*launcher];
  if (is_srun(word)) return for_srun({command, environment}, *launcher, sides);
  switch (flavour_of_launcher(word, environment)) {
    case MpiFlavour::kOpenMpi: return for_open_mpi({command, environment}, *launcher, sides);
    case MpiFlavour::kMpich: return for_hydra({command, environment}, *launcher, sides);
    default: break;
  }
  return Error{Code::kUnsupported,
               fmt::format("{} is the launcher of an MPI that Nessie does not know: it cannot keep the program from {}",
                           word, joined_names(servers_only))};
}

}  // namespace nessie::cli
