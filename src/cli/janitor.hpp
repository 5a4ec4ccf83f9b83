// SPDX-License-Identifier: BSD-3-Clause
// Tidies up after a `nessie run` that was killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace nessie::cli {

/// A small process that does nothing unless this one dies without ending it. Then it terminates what is left of the
/// program, waits until the servers have drained and gone, and removes the run's folders, and that of logs if nothing
/// is left in it. It knows the run's processes by the credential in their environment.
class Janitor {
 public:
  Janitor(const std::vector<std::string> &folders, const std::string &log_folder, const std::string &credential);
  Janitor(const Janitor &) = delete;
  ~Janitor();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int life_line_ = -1;
};

}  // namespace nessie::cli
