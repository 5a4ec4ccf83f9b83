// SPDX-License-Identifier: BSD-3-Clause
// What can be told of an MPI command line from the outside, cheaply.
#pragma once

#include "environment.hpp"
#include "launcher_words.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

enum class MpiFlavour { kUnknown, kOpenMpi, kMpich };
const char *name_of(MpiFlavour flavour);

/// Which MPI's mpiexec `program` is, by the name of the file that it is in the end.
MpiFlavour flavour_of_launcher(const std::string &program, const Environment &environment);
/// Which MPI the ELF file is linked to.
MpiFlavour flavour_of_program(const std::string &path);

/// A sentence, if a launcher of one MPI would start a program of another: each rank would then be a job of its own, and
/// they would overwrite each other's files.
std::optional<std::string> mismatch(const std::vector<std::string> &command, const Environment &environment);

/// The file that execvp would start; empty if there is none.
std::string find_program(const std::string &word, const Environment &environment);
/// The name of the file that a program, looked for in PATH, is in the end; empty if there is none.
std::string name_behind(const std::string &program, const Environment &environment);

/// Where in the command the launcher stands: at the front, or behind the words of a wrapper.
std::optional<std::size_t> find_launcher(const std::vector<std::string> &command, const Environment &environment);

/// Whether that is Slurm's.
bool is_srun(const std::string &launcher);

/// Where in the command the program stands: the first one behind the launcher, if there is any, or at the front.
std::size_t find_program_behind(const std::vector<std::string> &command, const Environment &environment);
/// The word of the command by which the launcher was told to set LD_PRELOAD, or to pass no environment on; empty: none.
std::string preload_in(const std::vector<std::string> &command);

struct Rank {
  int number, of;
};
/// Which process of how many the launcher that started this one says that it is.
std::optional<Rank> rank_in(const Environment &environment);

struct LauncherOption {
  std::string name;   ///< without dashes
  std::string value;  ///< the first one, if it is an option whose values are known
  std::size_t first;  ///< where in the command it stands
  std::size_t last;   ///< where its last value stands; the same as `first` where that has the value behind a "="
};
/// The launcher's options, of each of its programs, which ":" separates; none of the programs' own.
std::vector<LauncherOption> launcher_options(const std::vector<std::string> &command, const Environment &environment);

}  // namespace nessie::cli
