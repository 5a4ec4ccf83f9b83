// SPDX-License-Identifier: BSD-3-Clause
// What one run of a program says of its I/O: natively, or under `nessie run`.
#pragma once

#include "child.hpp"

#include <nessie/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <map>
#include <string>

namespace bench {

/// By metric: the words of docs/benchmarks.md, and "bytes", which `size_bytes` of the series says.
using Figures = std::map<std::string, double>;

/// A run that is over, and when one of its files was changed last.
struct StagingRun {
  ProgramResult program;
  std::chrono::system_clock::time_point last_change;
};

/// From the program's last line, "result bytes=… io_s=… run_s=…", with "read_bytes=… read_s=…" if it reads. What it
/// did not do (write, read) has no figures. kIo: it printed no such line.
nessie::Result<Figures> native_figures(const StagingRun &run);

/// The same, with what `nessie run --json` says. kIo: not everything was staged.
nessie::Result<Figures> staged_figures(const StagingRun &run, const nlohmann::json &summary);

}  // namespace bench
