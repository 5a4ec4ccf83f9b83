// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

// The names of the libraries that a program needs stand near the head of its file.
constexpr std::size_t kHeadBytes = 1 << 20;

bool is_program(const fs::path &path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

bool is_option(const std::string &word) {
  return word.starts_with('-') && word.find_first_not_of('-') != std::string::npos;
}

/// The option that stands at `place`; with "=", its value is in the same word. Of one that is not known no word is
/// taken: whether what follows is the program can be looked up.
LauncherOption option_at(const std::vector<std::string> &command, std::size_t place, bool of_srun) {
  const auto &word = command[place];
  const auto name = word.substr(word.find_first_not_of('-'));
  if (const auto equals = name.find('='); equals != std::string::npos)
    return {name.substr(0, equals), name.substr(equals + 1), place, place};
  const auto values = words_behind(name, of_srun).value_or(0);
  return {name, values > 0 && place + 1 < command.size() ? command[place + 1] : "", place, place + values};
}

bool is_assignment(const std::string &word) { return word.starts_with('-') || word.find('=') != std::string::npos; }

}  // namespace

const char *name_of(MpiFlavour flavour) {
  switch (flavour) {
    case MpiFlavour::kOpenMpi: return "Open MPI";
    case MpiFlavour::kMpich: return "MPICH";
    default: return "an MPI that Nessie does not know";
  }
}

std::string find_program(const std::string &word, const Environment &environment) {
  if (word.empty()) return {};
  if (word.find('/') != std::string::npos) return is_program(word) ? word : std::string();
  std::istringstream folders(environment.get("PATH").value_or("/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / word)) return (fs::path(folder) / word).string();
  }
  return {};
}

std::string name_behind(const std::string &program, const Environment &environment) {
  std::error_code error;
  const auto path = find_program(program, environment);
  return path.empty() ? std::string() : fs::canonical(path, error).filename().string();
}

MpiFlavour flavour_of_launcher(const std::string &program, const Environment &environment) {
  if (!is_launcher_name(fs::path(program).filename().string())) return MpiFlavour::kUnknown;
  const auto name = name_behind(program, environment);
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
  if (!head.starts_with("\177ELF")) return MpiFlavour::kUnknown;
  if (head.find("libmpi.so.") != std::string::npos) return MpiFlavour::kOpenMpi;
  if (head.find("libmpich.so.") != std::string::npos) return MpiFlavour::kMpich;
  return MpiFlavour::kUnknown;
}

std::optional<std::string> mismatch(const std::vector<std::string> &command, const Environment &environment) {
  const auto launcher = flavour_of_launcher(command.front(), environment);
  if (launcher == MpiFlavour::kUnknown) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const auto path = find_program(command[i], environment);
    const auto program = path.empty() ? MpiFlavour::kUnknown : flavour_of_program(path);
    if (program == MpiFlavour::kUnknown) continue;
    if (program == launcher) return std::nullopt;
    return fmt::format(
        "{} is linked to {}, but {} is {}'s: every rank would be a job of its own; use the launcher of "
        "the program's MPI",
        command[i], name_of(program), command.front(), name_of(launcher));
  }
  return std::nullopt;
}

std::optional<std::size_t> find_launcher(const std::vector<std::string> &command, const Environment &environment) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (!is_launcher_name(fs::path(command[i]).filename().string())) continue;
    if (i == 0 || !find_program(command[i], environment).empty()) return i;
  }
  return std::nullopt;
}

bool is_srun(const std::string &launcher) { return fs::path(launcher).filename() == "srun"; }

std::size_t find_program_behind(const std::vector<std::string> &command, const Environment &environment) {
  const auto launcher = find_launcher(command, environment);
  const bool of_srun = launcher && is_srun(command[*launcher]);
  for (std::size_t i = launcher ? *launcher + 1 : command.size(); i < command.size(); ++i) {
    if (is_option(command[i]))
      i = option_at(command, i, of_srun).last;
    else if (!find_program(command[i], environment).empty())
      return i;
  }
  return launcher.value_or(0);
}

std::vector<LauncherOption> launcher_options(const std::vector<std::string> &command, const Environment &environment) {
  std::vector<LauncherOption> options;
  const auto launcher = find_launcher(command, environment);
  const bool of_srun = launcher && is_srun(command[*launcher]);
  bool in_program = false;
  for (std::size_t i = launcher ? *launcher + 1 : command.size(); i < command.size(); ++i) {
    if (command[i] == ":") in_program = false;
    if (in_program) continue;
    if (is_option(command[i])) {
      options.push_back(option_at(command, i, of_srun));
      i = options.back().last;
    } else {
      in_program = !find_program(command[i], environment).empty();
    }
  }
  std::erase_if(options, [&](const auto &option) { return option.last >= command.size(); });
  return options;
}

std::optional<Rank> rank_in(const Environment &environment) {
  static constexpr std::array<std::array<const char *, 2>, 3> kLaunchers = {{
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
  }};
  for (const auto &[number, of] : kLaunchers) {
    const auto rank = environment.get(number), size = environment.get(of);
    Rank found{-1, 0};
    if (rank) std::from_chars(rank->data(), rank->data() + rank->size(), found.number);
    if (size) std::from_chars(size->data(), size->data() + size->size(), found.of);
    if (found.number >= 0 && found.number < found.of) return found;
  }
  return std::nullopt;
}

std::string preload_in(const std::vector<std::string> &command) {
  bool of_env = false;  // env takes assignments
  for (std::size_t i = 0; i < command.size(); ++i) {
    const auto next = i + 1 < command.size() ? command[i + 1] : std::string();
    const auto &word = command[i];
    if (word.starts_with("--export=") && word.find("ALL") == std::string::npos) return word;
    const bool sets = word == "-x" || word == "--env" || word == "--export" || word == "-E";
    const bool sets_next = (word == "-env" || word == "-genv") && next == "LD_PRELOAD";
    if (sets_next || (sets && next.starts_with("LD_PRELOAD="))) return fmt::format("{} {}", word, next);
    if (of_env && word.starts_with("LD_PRELOAD=")) return word;
    of_env = word == "env" || word.ends_with("/env") || (of_env && is_assignment(word));
  }
  return {};
}

}  // namespace nessie::cli
