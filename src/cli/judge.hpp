// SPDX-License-Identifier: BSD-3-Clause
// Whether a program would be staged below `nessie run`, and why. What is decided here when a program is looked at, the
// preloaded library decides when it runs (interpose/pnetcdf/shim/library.c, programs.c, ranks.c), by the same marks.
#pragma once

#include "subject.hpp"

#include <string>
#include <vector>

namespace nessie::cli {

enum class Verdict { kStaged, kPartly, kNot };

struct Finding {
  std::string what;
  std::string advice;  ///< what to do; empty: nothing
};

struct Judgement {
  Verdict verdict = Verdict::kStaged;
  std::string why;                 ///< of kPartly: what would be; of kNot: the reason
  std::vector<Finding> findings;   ///< what weighs most comes first
  std::vector<std::string> calls;  ///< names of the I/O libraries that the program calls
  std::string mpi, pnetcdf;        ///< files of those that the program has; empty: none

  /// "would be staged in part: …"
  std::string sentence() const;
};

Judgement judge(const Subject &subject);

}  // namespace nessie::cli
