// SPDX-License-Identifier: BSD-3-Clause
#include "other_nodes.hpp"

#include "allocation.hpp"
#include "launcher.hpp"

#include <base/config.hpp>

#include <algorithm>
#include <set>

namespace nessie::cli {

namespace {

/// Outside of a job srun starts processes wherever there is room.
bool srun_may_use_other_nodes(const std::vector<std::string> &command, const Environment &environment) {
  const auto launcher = find_launcher(command, environment);
  return launcher && is_srun(command[*launcher]) && environment.get("SLURM_JOB_NUM_NODES") != "1";
}

/// Whoever cannot be understood may mean any.
bool names_other_hosts(const Result<Allocation> &told) {
  return !told || !std::ranges::all_of(told->hosts, &JobHost::here);
}

/// As Open MPI's list has it. Before version 5, a variable that is only named, and has a "=" in its value, is not
/// carried; and a value ends at ";", which is why those that take part in staging also read "|" between URLs.
std::string listed(const std::string &variable, const Environment &environment) {
  auto value = environment.get(variable).value_or("");
  if (value.find('=') == std::string::npos) return variable;
  std::ranges::replace(value, ';', '|');
  return variable + "=" + value;
}

/// Adds to the list ("A;B=1") what is not in it.
void add_to_list(const std::vector<std::string> &variables, const Environment &environment, std::string &list) {
  std::set<std::string> names;
  for (const auto &word : split(list, ";")) names.insert(word.substr(0, word.find('=')));
  for (const auto &variable : variables) {
    if (names.contains(variable)) continue;
    if (!list.empty()) list += ';';
    list += listed(variable, environment);
  }
}

/// The list among the command's words, if it says what Open MPI is to carry: that replaces the environment's.
std::string *list_in(std::vector<std::string> &command, const Environment &environment) {
  for (const auto &option : launcher_options(command, environment)) {
    if (option.name.ends_with("mca") && option.value == "mca_base_env_list") return &command[option.last];
  }
  return nullptr;
}

/// Open MPI before version 5 starts nothing if it is told by both -x and its list what to carry; but what is in the
/// list that it keeps of its parameter files does not count.
std::string name_of_list(const std::vector<std::string> &command, const Environment &environment) {
  const std::string name = "OMPI_MCA_mca_base_env_list";
  const auto launcher = find_launcher(command, environment);
  const bool before_5 = name_behind(launcher ? command[*launcher] : "orterun", environment) == "orterun";
  return before_5 && !environment.get(name) ? name + "_internal" : name;
}

}  // namespace

bool may_use_other_nodes(const std::vector<std::string> &command, const Environment &environment) {
  return srun_may_use_other_nodes(command, environment) || has_several_components(environment) ||
         std::ranges::any_of(told_allocations(command, environment), names_other_hosts);
}

void carry_to_other_nodes(const std::vector<std::string> &variables, std::vector<std::string> &command,
                          Environment &environment) {
  if (auto *list = list_in(command, environment)) return add_to_list(variables, environment, *list);
  const auto name = name_of_list(command, environment);
  auto list = environment.get(name).value_or("");
  add_to_list(variables, environment, list);
  environment.set(name, list);
}

}  // namespace nessie::cli
