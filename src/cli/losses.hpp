// SPDX-License-Identifier: BSD-3-Clause
// What a staging server that died has left of itself: its ledger, and its board.
#pragma once

#include "summary.hpp"

#include <nessie/result.hpp>
#include <staging.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nessie::cli {

using Losses = Result<std::vector<staging::FileReport>>;
/// What its ledger says that it holds and has not yet put into the files. kNotFound, kBadMessage: there is none, or it
/// cannot be read.
Losses read_losses(const std::string &run_directory, int index);

struct Remains {
  Losses lost;
  /// Unless the opposite is known: it had files; not all of them are whole, or have gone on natively.
  bool had_files = true, may_lack = true;
  bool has_kept_files = false;  ///< that outlive the server
  std::uint64_t natives = 0;    ///< files that went native
};
Remains read_remains(const std::string &run_directory, const std::string &board_directory, int index);

/// Adds what is known to be missing to the record.
void add_losses(const Losses &lost, RunRecord &record);
/// The same, and that a server broke: "staging server 1 was killed by signal 9 (Killed)".
void add_broken(std::string what, const Remains &remains, RunRecord &record);
/// The same of one in whose place another one goes on: what its log keeps is not missing.
void add_restarted(int index, const Remains &remains, RunRecord &record);

}  // namespace nessie::cli
