// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <base/config.hpp>
#include <base/host.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

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

namespace fs = std::filesystem;

// The names of the libraries that a program needs stand near the head of its file.
constexpr std::size_t kHeadBytes = 1 << 20;

const char *name_of(MpiFlavour flavour) { return flavour == MpiFlavour::kOpenMpi ? "Open MPI" : "MPICH"; }

bool is_program(const fs::path &path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// As execvp looks for it; empty if there is none.
fs::path find_program(const std::string &word, const Environment &environment) {
  if (word.empty()) return {};
  if (word.find('/') != std::string::npos) return is_program(word) ? fs::path(word) : fs::path();
  std::istringstream folders(environment.get("PATH").value_or("/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / word)) return fs::path(folder) / word;
  }
  return {};
}

bool is_launcher_name(std::string_view name) {
  return name.starts_with("mpiexec") || name.starts_with("mpirun") || name == "orterun" || name == "prterun";
}

int number(const std::optional<std::string> &text) {
  int value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

bool lists_several_hosts(const std::string &path) {
  std::ifstream file(path);
  std::set<std::string> hosts;
  for (std::string host; file >> host;) hosts.insert(host);
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

}  // namespace

MpiFlavour flavour_of_launcher(const std::string &program, const Environment &environment) {
  const auto path = find_program(program, environment);
  if (path.empty() || !is_launcher_name(path.filename().string())) return MpiFlavour::kUnknown;
  std::error_code error;
  const auto name = fs::canonical(path, error).filename().string();
  for (const char *part : {"orterun", "prterun", "openmpi"}) {
    if (name.find(part) != std::string::npos) return MpiFlavour::kOpenMpi;
  }
  for (const char *part : {"hydra", "mpich"}) {
    if (name.find(part) != std::string::npos) return MpiFlavour::kMpich;
  }
  return MpiFlavour::kUnknown;
}

MpiFlavour flavour_of_program(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (!head.starts_with("\x7f"
                        "ELF"))
    return MpiFlavour::kUnknown;
  if (head.find("libmpi.so.") != std::string::npos) return MpiFlavour::kOpenMpi;
  if (head.find("libmpich.so.") != std::string::npos) return MpiFlavour::kMpich;
  return MpiFlavour::kUnknown;
}

std::optional<std::string> mismatch(const std::vector<std::string> &command, const Environment &environment) {
  const auto launcher = flavour_of_launcher(command.front(), environment);
  if (launcher == MpiFlavour::kUnknown) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const auto path = find_program(command[i], environment);
    const auto program = path.empty() ? MpiFlavour::kUnknown : flavour_of_program(path.string());
    if (program == MpiFlavour::kUnknown) continue;
    if (program == launcher) return std::nullopt;
    return fmt::format(
        "{} is linked to {}, but {} is {}'s: every rank would be a job of its own; use the launcher of "
        "the program's MPI",
        command[i], name_of(program), command.front(), name_of(launcher));
  }
  return std::nullopt;
}

bool may_use_other_nodes(const std::vector<std::string> &command, const Environment &environment) {
  static constexpr std::array<std::string_view, 4> kLists = {"-H", "-host", "--host", "-hosts"};
  static constexpr std::array<std::string_view, 5> kFiles = {"-f", "-hostfile", "--hostfile", "-machinefile",
                                                             "--machinefile"};
  const bool is_mpiexec = flavour_of_launcher(command.front(), environment) != MpiFlavour::kUnknown;
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (std::ranges::count(kLists, command[i]) > 0 && lists_other_hosts(command[i + 1])) return true;
    const bool is_file = std::ranges::count(kFiles, command[i]) > 0 && (command[i] != "-f" || is_mpiexec);
    if (is_file && file_lists_other_hosts(command[i + 1])) return true;
  }
  if (number(environment.get("SLURM_JOB_NUM_NODES")) > 1) return true;
  const auto node_file = environment.get("PBS_NODEFILE");
  return node_file && lists_several_hosts(*node_file);
}

}  // namespace nessie::cli
