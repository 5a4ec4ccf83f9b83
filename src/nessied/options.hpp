// SPDX-License-Identifier: BSD-3-Clause
// nessied's command line.
#pragma once

#include <base/config.hpp>
#include <nessie/result.hpp>
#include <services/staging/server/server.hpp>

#include <optional>
#include <string>

namespace nessied {

struct Options {
  std::optional<std::uint32_t> index;  ///< not given: the rank in MPI_COMM_WORLD
  std::optional<std::uint32_t> servers;
  std::string run_directory = ".";
  std::string board_directory;  ///< empty: no board
  int parent_fd = -1;           ///< at its end of file the server drains and exits; -1: none
  bool help = false;
  nessie::Config config;  ///< with the flags put in
};

extern const char *const kUsage;

/// kInvalidArgument with a sentence that says what to correct.
nessie::Result<Options> parse_options(int argc, char **argv);
/// What the staging server is to be, but for its place among the others.
nessie::Result<staging::ServerOptions> server_options(const nessie::Config &config);

}  // namespace nessied
