// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <fmt/format.h>
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
  static constexpr std::array<std::string_view, 8> kHostOptions = {
      "-H", "-host", "--host", "-hosts", "-hostfile", "--hostfile", "-machinefile", "--machinefile"};
  const bool names_hosts = std::any_of(command.begin(), command.end(), [](const std::string &word) {
    return std::find(kHostOptions.begin(), kHostOptions.end(), word) != kHostOptions.end();
  });
  if (names_hosts || number(environment.get("SLURM_JOB_NUM_NODES")) > 1) return true;
  const auto node_file = environment.get("PBS_NODEFILE");
  return node_file && lists_several_hosts(*node_file);
}

}  // namespace nessie::cli
