// SPDX-License-Identifier: BSD-3-Clause
// Two processes of this machine, connected, and what lies between them.
#pragma once

#include <base/config.hpp>
#include <nessie/result.hpp>

#include <string>

namespace nessie::cli {

struct ProbeResult {
  std::string transport;          ///< "shm"
  std::string explanation;        ///< why it was chosen
  double round_trip_us = 0;       ///< of a 64-byte message, median
  double get_allocated_MBps = 0;  ///< 16 MiB out of memory that Nessie allocated, median
  double get_own_MBps = 0;        ///< 16 MiB out of memory that the application allocated, median
};

/// Forks a process, connects to it and measures. To be called before the first thread is started.
Result<ProbeResult> probe_two_processes(const Config &config);
/// Connects to `url` with the credential of the settings; measures nothing.
Result<ProbeResult> probe_url(const Config &config, const std::string &url);

}  // namespace nessie::cli
