// SPDX-License-Identifier: BSD-3-Clause
// `nessie serve FILE.toml`: one nessied with the composition of that file (docs/hosting.md), for programs that attach.
#pragma once

#include "standing.hpp"

#include <string>

namespace nessie::cli {

/// Returns when it was stopped, and has finished: nessied's exit code; 1: it did not start, and has said why.
int serve_composition(const std::string &file, const std::string &name, const StandingFiles &files);

}  // namespace nessie::cli
