// SPDX-License-Identifier: BSD-3-Clause
// The interface compiler as a command: `nessie idl`.
#pragma once

#include <string>
#include <vector>

namespace xdr::idl {

/// What interfaces are compiled to: for NAME.x, "cpp" (NAME.hpp), "c" (NAME.h, NAME_xdr.c), "fortran" (NAME.f90) and
/// "python" (NAME.py).
std::vector<std::string> languages();

struct Command {
  std::vector<std::string> files;
  std::string directory = ".";  ///< where what comes out goes
  std::string name_space;       ///< of C++; empty: NAME
  std::vector<std::string> languages = {"cpp"};
};

/// Compiles each file. Faults go to stderr. Returns the exit code: 0, or 1 if there was one; then nothing was written
/// for that file, and what was there before stays.
int compile(const Command &command);

}  // namespace xdr::idl
