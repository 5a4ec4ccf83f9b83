// SPDX-License-Identifier: BSD-3-Clause
// What a staging server that died held and had not yet put into the files.
#pragma once

#include <nessie/result.hpp>
#include <staging.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nessie::cli {

/// Reads the ledger that server `index` kept in `run_directory` and appends what it says is missing.
/// kNotFound, kBadMessage: there is none, or it cannot be read.
Status note_losses(const std::string &run_directory, int index, std::vector<staging::FileReport> &losses);

/// What the board of a server that died tells of it, as it outlives it.
struct LastTraces {
  bool had_files = true;  ///< that the program may write; unless it is known that there were none
  std::uint64_t natives = 0;
};
LastTraces read_board(const std::string &board_directory, int index);

}  // namespace nessie::cli
