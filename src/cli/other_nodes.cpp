// SPDX-License-Identifier: BSD-3-Clause
#include "other_nodes.hpp"

#include "launcher.hpp"

#include <base/config.hpp>
#include <base/host.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

namespace nessie::cli {

namespace {

int number(const std::optional<std::string> &text) {
  int value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

bool lists_several_hosts(std::istream &list) {
  std::set<std::string> hosts;
  for (std::string host; list >> host;) hosts.insert(host);
  return hosts.size() > 1;
}

/// The addresses of this host's interfaces, as text.
std::set<std::string> own_addresses() {
  std::set<std::string> found;
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const auto *each = list; each != nullptr; each = each->ifa_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (each->ifa_addr == nullptr) continue;
    const void *address = nullptr;
    if (each->ifa_addr->sa_family == AF_INET)
      address = &reinterpret_cast<const sockaddr_in *>(each->ifa_addr)->sin_addr;
    else if (each->ifa_addr->sa_family == AF_INET6)
      address = &reinterpret_cast<const sockaddr_in6 *>(each->ifa_addr)->sin6_addr;
    if (address != nullptr && inet_ntop(each->ifa_addr->sa_family, address, text.data(), text.size()) != nullptr)
      found.insert(text.data());
  }
  freeifaddrs(list);
  return found;
}

/// "node:4" and "[::1]:4" without what follows the host.
std::string host_in(const std::string &word) {
  if (word.starts_with('[')) return word.substr(1, word.find(']') - 1);
  const bool is_address = std::count(word.begin(), word.end(), ':') > 1;  // of IPv6
  return is_address ? word : word.substr(0, word.find(':'));
}

bool is_this_host(const std::string &host) {
  static const auto addresses = own_addresses();
  const auto name = host_name();
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == name ||
         name.starts_with(host + '.') || host.starts_with(name + '.') || addresses.contains(host);
}

/// "a:4,b" of --host.
bool lists_other_hosts(const std::string &list) {
  const auto words = split(list, ",");
  return words.empty() || !std::ranges::all_of(words, [](const auto &word) { return is_this_host(host_in(word)); });
}

/// A host file: a host begins each line; "#" begins a comment. One that cannot be read may name any.
bool file_lists_other_hosts(const std::string &path) {
  std::ifstream file(path);
  bool any = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    if (!(words >> host)) continue;
    any = true;
    if (!is_this_host(host_in(host))) return true;
  }
  return !any;
}

bool names_other_hosts(const LauncherOption &option) {
  static constexpr std::array<std::string_view, 3> kLists = {"H", "host", "hosts"};
  static constexpr std::array<std::string_view, 6> kFiles = {"f",           "hostfile", "default-hostfile",
                                                             "machinefile", "rankfile", "rf"};
  if (std::ranges::count(kLists, option.name) > 0) return lists_other_hosts(option.value);
  return std::ranges::count(kFiles, option.name) > 0 && file_lists_other_hosts(option.value);
}

/// Outside of a job srun starts processes wherever there is room.
bool srun_may_use_other_nodes(const std::vector<std::string> &command, const Environment &environment) {
  const auto launcher = find_launcher(command, environment);
  return launcher && std::filesystem::path(command[*launcher]).filename() == "srun" &&
         number(environment.get("SLURM_JOB_NUM_NODES")) != 1;
}

bool environment_names_other_nodes(const Environment &environment) {
  for (const char *name :
       {"HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "PE_HOSTFILE"}) {
    const auto path = environment.get(name);
    if (path && file_lists_other_hosts(*path)) return true;
  }
  std::istringstream lsf(environment.get("LSB_HOSTS").value_or(""));
  std::ifstream pbs(environment.get("PBS_NODEFILE").value_or(""));
  return number(environment.get("SLURM_JOB_NUM_NODES")) > 1 || lists_several_hosts(lsf) || lists_several_hosts(pbs);
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
  return std::ranges::any_of(launcher_options(command, environment), names_other_hosts) ||
         srun_may_use_other_nodes(command, environment) || environment_names_other_nodes(environment);
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
