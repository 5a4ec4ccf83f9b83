// SPDX-License-Identifier: BSD-3-Clause
// The interface compiler as a command: `nessie idl`.
#pragma once

#include <string>
#include <vector>

namespace xdr::idl {

struct Command {
  std::vector<std::string> files;
  std::string directory = ".";  ///< where NAME.hpp goes, and NAME_rpc.hpp, for NAME.x
  std::string name_space;       ///< empty: NAME
};

/// Compiles each file. Faults go to stderr. Returns the exit code: 0, or 1 if there was one; then nothing was written
/// for that file, and what was there before stays.
int compile(const Command &command);

}  // namespace xdr::idl
