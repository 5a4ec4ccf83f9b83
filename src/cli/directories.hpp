// SPDX-License-Identifier: BSD-3-Clause
// `nessie directory`: what a directory has.
#pragma once

#include <string>

namespace nessie::cli {

struct DirectoryOptions {
  enum class Action { kList, kLookup, kWatch };
  Action action = Action::kList;
  std::string name;   ///< of lookup; the beginning of names otherwise
  std::string where;  ///< empty: as the settings say
  int timeout_s = 10;
  int changes = 0;  ///< after which watching ends; 0: never
  bool json = false;
};

/// Prints it. Non-zero if the directory does not answer, or a name that is looked up is not there.
int directory(const DirectoryOptions &options);

}  // namespace nessie::cli
