// SPDX-License-Identifier: BSD-3-Clause
// Programs that do their I/O through PnetCDF, run in all the ways that there are: natively on each of Open MPI's
// MPI-IO layers, with PnetCDF's own burst-buffer driver, and under `nessie run` in each of its modes.
#pragma once

#include "options.hpp"
#include "staging_figures.hpp"

#include <nessie/result.hpp>

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace bench {

/// Of `nessie run --mode`.
inline constexpr std::array kStagingModes{"direct", "caching"};
/// Of Open MPI, by the names of its components.
inline constexpr std::array kMpiIo{"ompio", "romio321"};

/// A program to be run, and how.
struct StagingCase {
  std::string variant{};  ///< what the modes in the report end with; empty: nothing
  int processes = 8;
  std::vector<std::string> program{};  ///< of Nessie's programs, with its arguments; it gets --prefix besides
  std::vector<std::string> before{};   ///< likewise: runs natively before each run, and does not count; empty: nothing
  std::string decisive = "perceived_s";  ///< the MPI-IO layer that has less of this counts
  bool overlaps = false;                 ///< whether the share of the I/O in the run is of interest
  std::string recorded{};  ///< a stream of a staged program's files that is recorded beside it; empty: none
  std::string between{};   ///< a shell's command that a staged program is to carry out, which knows NESSIE_BENCH_RUN
};

/// A folder for files that goes when we go, however that is: a process of its own sees to it.
class Scratch {
 public:
  /// In memory, if there is a file system in memory that can be written.
  explicit Scratch(bool in_memory);
  ~Scratch();
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  const std::filesystem::path &path() const { return path_; }
  bool in_memory() const { return in_memory_; }
  void clear() const;
  /// When a file in it was changed last.
  std::chrono::system_clock::time_point last_change() const;

 private:
  std::filesystem::path path_;
  bool in_memory_ = false;
  int alive_ = -1;  ///< a pipe that is closed when we go
  pid_t cleaner_ = -1;
};

class StagingTeam {
 public:
  /// `limit`: how long a run may take.
  explicit StagingTeam(std::chrono::seconds limit) : limit_(limit) {}

  /// Each runs the program once, in an empty folder. kTimedOut: it took longer than the limit.
  nessie::Result<Figures> run_native(const StagingCase &c, const std::string &mpi_io);
  nessie::Result<Figures> run_with_burst_buffer(const StagingCase &c, const std::string &mpi_io);
  /// `more`: of what `nessie run` takes.
  nessie::Result<Figures> run_staged(const StagingCase &c, const std::string &mode, const std::string &mpi_io,
                                     const std::vector<std::string> &more = {});

  /// Why PnetCDF's driver cannot be measured: it was not built, or takes no notice of what it is told. Empty if it can.
  std::string why_no_burst_buffer();
  /// Where its log is: "memory" or "disk".
  const char *log_place() const { return log_.in_memory() ? "memory" : "disk"; }

 private:
  nessie::Status prepare(const StagingCase &c, const std::string &mpi_io);
  std::vector<std::string> command(int processes, const std::vector<std::string> &program, const std::string &mpi_io);
  nessie::Result<StagingRun> run(const std::vector<std::string> &command,
                                 const std::vector<std::string> &environment = {});
  std::vector<std::string> burst_buffer_environment(bool keep_log) const;
  std::vector<std::string> recorded_beside(const std::vector<std::string> &run, const std::string &stream) const;

  std::chrono::seconds limit_;
  Scratch files_{false}, log_{true}, summaries_{false};
};

}  // namespace bench
