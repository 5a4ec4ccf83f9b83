// SPDX-License-Identifier: BSD-3-Clause
// What a staging server that died held and had not yet put into the files.
#pragma once

#include <nessie/result.hpp>
#include <services/staging/protocol.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// Reads the ledger that server `index` kept in `run_directory` and appends what it says is missing.
/// kNotFound, kBadMessage: there is none, or it cannot be read.
Status note_losses(const std::string &run_directory, int index, std::vector<staging::FileReport> &losses);

}  // namespace nessie::cli
