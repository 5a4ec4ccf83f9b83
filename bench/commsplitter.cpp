// SPDX-License-Identifier: BSD-3-Clause
// commsplitter: what calls of MPI take in one of two programs that share a job, each with an MPI_COMM_WORLD of its own
// (src/interpose/commsplitter), beside the same program in a job of its own, without the library. The other program of
// the job sleeps, so that both ways have two cores for two processes.
#include "comparison.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;
constexpr std::uint64_t kBytes = 8;

struct Call {
  const char *question, *mode;
  Metric metric;
  Convert convert;
};
constexpr Call kCalls[] = {{"round-trip", "ping-pong", {"half_round_trip_us", "us"}, half},
                           {"allreduce", "allreduce", {"call_us", "us"}, as_measured},
                           {"put", "put", {"round_trip_us", "us"}, as_measured}};

class Split final : public Comparison {
 public:
  Split(const Options &options, Report &report) : Comparison(options, report, {"call_us", "us"}) {
    for (const auto &rival : those_here({Library::kOpenMpi, Library::kMpich}, {Network::kSharedMemory}))
      if (can_be_split(rival.library)) mpis_.push_back(rival);
  }

 private:
  Status measure() override;
  void add_ratios() override;
  Metric metric_of(const std::string &mode) const override;
  Status measure(const Rival &mpi, bool split);
  Series series_of(const Rival &mpi, const Call &call, bool split) const;

  std::vector<Rival> mpis_;
};

Metric Split::metric_of(const std::string &mode) const {
  const auto *call = std::ranges::find_if(kCalls, [&](const Call &each) { return mode.starts_with(each.mode); });
  return call == std::end(kCalls) ? Comparison::metric_of(mode) : call->metric;
}

/// Ours is told by the MPI that it is over: "ping-pong-openmpi".
Series Split::series_of(const Rival &mpi, const Call &call, bool split) const {
  const std::string mode = call.mode;
  if (!split) return theirs(mpi, mode, kBytes);
  return series("nessie", name_of(mpi.network), mode + '-' + name_of(mpi.library), kBytes);
}

Status Split::measure(const Rival &mpi, bool split) {
  std::vector<Question> questions;
  for (const auto &call : kCalls) questions.push_back({call.question, {kBytes}});
  auto answers = bench::ask(mpi, {.split = split}, questions);
  if (!answers) return answers.error();
  for (const auto &call : kCalls)
    add(series_of(mpi, call, split), call.convert((*answers)[call.question][kBytes], kBytes));
  return {};
}

/// Who goes first changes, so that a machine that becomes slower or faster favours nobody.
Status Split::measure() {
  for (const auto &mpi : mpis_)
    for (bool second : {false, true})
      if (auto status = measure(mpi, second != (repetition() % 2 == 1)); !status.ok()) return status;
  return {};
}

void Split::add_ratios() {
  for (const auto &mpi : mpis_)
    for (const auto &call : kCalls) compare(series_of(mpi, call, true), series_of(mpi, call, false));
}

}  // namespace

Status commsplitter(const Options &options, Report &report) {
  return Split(options, report)
      .run_on_fit_cores(options.repetitions(25, 9), "a job that is split, and one that is not");
}

}  // namespace bench
