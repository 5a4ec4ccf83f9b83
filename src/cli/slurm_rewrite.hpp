// SPDX-License-Identifier: BSD-3-Clause
// Puts `nessie run --` in front of the parallel programs of a job script. Nothing but this is inserted, and no line is
// added or removed.
#pragma once

#include <nessie/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

enum class Treatment {
  kRewritten,
  kAlready,   ///< it runs under `nessie run` as it is
  kLeft,      ///< it is none that would gain anything
  kDoubtful,  ///< it may be one; the user has to decide
};

/// A command that starts a parallel program, or may do so.
struct ParallelCommand {
  std::size_t line = 0;
  Treatment treatment = Treatment::kRewritten;
  std::string what;  ///< how it begins
  std::string why;   ///< except of kRewritten, where it may be a remark
};

struct Rewritten {
  std::string text;
  std::vector<ParallelCommand> commands;  ///< in the order of their lines
  bool takes_all_tasks = false;           ///< srun is used without a number of processes
};

/// `in_front` is what is inserted, with a blank at its end. kInvalidArgument: it is no script of a shell that is
/// understood here, or something in it does not end.
Result<Rewritten> rewrite(std::string_view script, const std::string &in_front);

}  // namespace nessie::cli
