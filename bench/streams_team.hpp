// SPDX-License-Identifier: BSD-3-Clause
// A server of streams, as users start it, and the processes that write and read; nobody is bound to a core.
#pragma once

#include "child.hpp"
#include "crew.hpp"
#include "options.hpp"

#include <nessie/streams.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// `nessie-streams`, until it goes.
class StreamsServer {
 public:
  /// `settings`: as KEY=VALUE; without a log, if they do not name one. Returns when it can be found. kIo: it did not
  /// start.
  static nessie::Result<std::unique_ptr<StreamsServer>> start(const std::string &transport,
                                                              const std::vector<std::string> &settings = {});
  ~StreamsServer();
  const std::string &at() const { return at_; }
  /// The process's memory: its own, and what it maps of its clients'.
  double resident_bytes() const;

 private:
  StreamsServer() = default;
  std::unique_ptr<Partner> program_;
  std::string at_;
};

/// A rank of those who write, or read, the workload's stream at a server. The first step waits for so many groups of
/// readers.
nessie::Result<nessie::streams::Writer> open_writer(const std::string &at, int rank = 0, int size = 1, int readers = 0);
nessie::Result<nessie::streams::Reader> open_reader(
    const std::string &at, int rank = 0, int size = 1,
    nessie::streams::Reading reading = nessie::streams::Reading::kEvery);

/// How an array is put.
enum class Putting {
  kPut,   ///< copied
  kSpan,  ///< computed where servers of this node see it
  kLent   ///< left where it is
};
struct PuttingMode {
  const char *mode;  ///< as in the report
  Putting how;
};
inline constexpr PuttingMode kPuttingModes[] = {
    {"put", Putting::kPut}, {"span", Putting::kSpan}, {"lent", Putting::kLent}};

/// An array of doubles of one rank's own, along one dimension, and how it gets into steps. Its first and last elements
/// say which step it is; in a span, where it is computed in each step, all do.
class StepArray {
 public:
  StepArray(std::uint64_t size_bytes, int rank = 0, int size = 1);
  nessie::Status define(nessie::streams::Writer &writer) const;
  /// Into the open step.
  nessie::Status put(nessie::streams::Writer &writer, Putting how);
  /// The two halves of a span: memory in the open step, which is then computed.
  nessie::Status span(nessie::streams::Writer &writer, void *&memory) const;
  void fill(const nessie::streams::Writer &writer, void *memory) const;
  /// All of a reader's open step, of one writer. kBadMessage: it is another step's.
  nessie::Status get(nessie::streams::Reader &reader);

 private:
  nessie::streams::Box box_;
  std::int64_t all_;
  std::vector<double> own_;
};

/// From a writer's begin_step() to its end_step(), with `work` between.
nessie::Status write_step(nessie::streams::Writer &writer, const std::function<nessie::Status()> &work);
/// A patient deadline.
nessie::Deadline soon();

/// All members of the crew are processes; the time limit is a workload's.
nessie::Result<std::unique_ptr<Board>> run_streams_crew(int members, const Duty &duty);

}  // namespace bench
