// SPDX-License-Identifier: BSD-3-Clause
// A program's command as one job of several programs (MPMD), with services as further ranks.
#pragma once

#include "environment.hpp"

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// `command` with `count` ranks more, behind those of its own, each of which runs `service`. kUnsupported: the launcher
/// is not known to start jobs of several programs; the sentence says what to do.
Result<std::vector<std::string>> with_services(std::vector<std::string> command, int count,
                                               const std::vector<std::string> &service, const Environment &environment);

/// Gives the program a world without the services (CommSplitter, preloaded), and lets the launcher start more ranks
/// than it has slots for: the services take none.
void split_world(const std::string &commsplitter, Environment &environment);

}  // namespace nessie::cli
