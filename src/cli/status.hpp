// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

struct StatusOptions {
  /// Of processes that serve, as nssi::find() takes them; none: the staging servers that NESSIE_SERVERS names.
  std::vector<std::string> places;
  bool json = false;
  std::optional<double> watch_s;  ///< again and again, after so long each time
};

/// Prints what each of them reports. Non-zero if one does not answer.
int status(const StatusOptions &options);

}  // namespace nessie::cli
