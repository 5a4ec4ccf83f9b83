// SPDX-License-Identifier: BSD-3-Clause
// nessie-transfer's command line.
#pragma once

#include <services/transfer/server/server.hpp>

#include <nessie/result.hpp>
#include <nssi/nssi.hpp>

#include <string>
#include <vector>

namespace transfer {

struct CommandLine {
  ServerOptions server;
  nssi::RuntimeOptions runtime;
  std::uint32_t provider = 0;
  std::vector<std::string> places;  ///< where the service is announced
  bool help = false;
};

extern const char *const kUsage;

/// kInvalidArgument, kNotFound with a sentence that says what to correct.
nessie::Result<CommandLine> parse_command_line(int argc, char **argv);

}  // namespace transfer
