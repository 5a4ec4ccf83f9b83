// SPDX-License-Identifier: BSD-3-Clause
// What launchers are called, and how many words follow their options: of commands, and of those in scripts.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace nessie::cli {

/// Those that `nessie run` is tried with. MPIs add to theirs: "mpiexec.hydra", "mpirun_rsh".
inline constexpr std::array<std::string_view, 5> kLauncherNames = {"srun", "mpirun", "mpiexec", "orterun", "prterun"};
/// Whether launchers are called so.
bool is_launcher_name(std::string_view name);

/// How many words follow this option of a launcher, which stands here without dashes and "=". Nothing: that is not
/// known.
std::optional<std::size_t> words_behind(std::string_view option, bool of_srun);

}  // namespace nessie::cli
