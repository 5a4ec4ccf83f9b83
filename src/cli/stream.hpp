// SPDX-License-Identifier: BSD-3-Clause
// What the commands of `nessie stream` share.
#pragma once

#include "commands.hpp"
#include "signals.hpp"

#include <nessie/streams.hpp>

#include <CLI/CLI.hpp>

#include <chrono>

namespace nessie::cli {

/// `nessie stream` and its commands, with their options.
void add_stream(CLI::App &app, StreamOptions &options);

/// Each is one command; all are as stream().
int tail_stream(const StreamOptions &options);
int record_stream(const StreamOptions &options);
int forward_stream(const StreamOptions &options);
int receive_stream(const StreamOptions &options);

int fail_stream(const Error &error);

/// Whether this process was asked to end. To be made before the first thread.
class Ending {
 public:
  static Result<Ending> watch();
  /// Stops the process meanwhile, if that is what was asked. One thread.
  bool is_asked();

 private:
  explicit Ending(Signals signals) : signals_(std::move(signals)) {}
  Signals signals_;
  bool is_asked_ = false;
};

inline std::chrono::seconds timeout_of(const StreamOptions &options) { return std::chrono::seconds(options.timeout_s); }

}  // namespace nessie::cli
