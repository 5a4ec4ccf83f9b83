// SPDX-License-Identifier: BSD-3-Clause
// The same program natively, with PnetCDF's burst-buffer driver and staged, repetition by repetition.
#pragma once

#include "staging_team.hpp"

#include <map>
#include <string>
#include <vector>

namespace bench {

class StagingComparison {
 public:
  /// `cases`: how many of them will be measured. Says aloud, and in the report, if there is no burst-buffer driver.
  StagingComparison(const Options &options, int repetitions, int cases, Report &report);

  /// Runs the program in all ways, interleaved, and adds what was found to the report: of native PnetCDF that on the
  /// faster MPI-IO layer. A layer that took more than three times as long as the other in the first repetition, or
  /// failed, is not run again. An error if a staged run fails, or no layer works.
  nessie::Status measure(const StagingCase &c);

  /// The MPI-IO layer on which the program is faster now, and its figures.
  struct Fastest {
    std::string mpi_io;
    Figures figures;
  };
  nessie::Result<Fastest> fastest_native(const StagingCase &c);

 private:
  /// By repetition.
  using Samples = std::map<int, Figures>;
  struct Measured {
    std::map<std::string, Samples> native, staged;
    Samples burst_buffer;
    std::map<std::string, std::string> left_out;  ///< MPI-IO layers, and why
  };

  nessie::Status measure_once(const StagingCase &c, int repetition, Measured &measured);
  nessie::Result<std::string> measure_native(const StagingCase &c, int repetition, Measured &measured);
  void measure_burst_buffer(const StagingCase &c, int repetition, const std::string &mpi_io, Measured &measured);
  void tell(const StagingCase &c, const Measured &measured);

  Report &report_;
  int repetitions_;
  bool verify_;
  StagingTeam team_;
  bool burst_buffer_;
  Progress progress_;
};

int staging_repetitions(const Options &options);

/// Measures each of the cases.
nessie::Status compare_staging(const Options &options, const std::vector<StagingCase> &cases, Report &report);

}  // namespace bench
