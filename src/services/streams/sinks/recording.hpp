// SPDX-License-Identifier: BSD-3-Clause
// What is recorded where: of all who write a stream into a file.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <nessie/result.hpp>

#include <string>

namespace nessie::streams::sinks {

struct RecordOptions {
  std::string path;
  Origin origin;
  bool append = false;  ///< goes on with a file that is there
};

/// What says that a file has another stream than the one that it is to go on with.
Error of_another(const std::string &path, const Origin &has, const Origin &wanted);

}  // namespace nessie::streams::sinks
