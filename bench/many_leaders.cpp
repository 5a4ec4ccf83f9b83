// SPDX-License-Identifier: BSD-3-Clause
#include "many_leaders.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

class Run final : public Comparison {
 public:
  Run(const Options &options, const ManyLeaders &workload, Report &report)
      : Comparison(options, report, workload.metric), workload_(workload) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Status measure_ours(const Measurement &measurement, int leaders);
  std::vector<Asked> asked() const;

  const ManyLeaders &workload_;
  std::vector<Rival> rivals_ = rivals_here(network_);
};

Status Run::measure_ours(const Measurement &measurement, int leaders) {
  const Team team{.leaders = leaders,
                  .followers = workload_.one_target ? 1 : leaders,
                  .waiting = measurement.waiting,
                  .answer_every = measurement.answer_every,
                  .memory_bytes = measurement.size_bytes};
  auto board = run_team(options_, team, measurement.lead);
  if (!board) return board.error();
  add(ours(measurement.mode, measurement.size_bytes, leaders),
      workload_.reported(measurement.figure(**board, leaders), measurement.size_bytes));
  return {};
}

/// What all measurements want beside them, each once.
std::vector<Asked> Run::asked() const {
  std::vector<Asked> all;
  for (const auto &m : workload_.measurements)
    for (const auto &beside : m.beside) {
      auto same = std::ranges::find(all, beside.question, &Asked::question);
      if (same == all.end()) same = all.insert(same, {beside.question, {}, beside.mode, workload_.reported});
      if (std::ranges::find(same->sizes, m.size_bytes) == same->sizes.end()) same->sizes.push_back(m.size_bytes);
    }
  return all;
}

Status Run::measure() {
  for (int leaders : workload_.leaders) {
    for (const auto &measurement : workload_.measurements)
      if (auto status = measure_ours(measurement, leaders); !status.ok()) return status;
    if (auto status = ask(rivals_, {leaders, workload_.one_target}, asked()); !status.ok()) return status;
  }
  return {};
}

void Run::add_ratios() {
  const int fewest = workload_.leaders.front();
  for (int leaders : workload_.leaders)
    for (const auto &m : workload_.measurements) {
      const auto mine = ours(m.mode, m.size_bytes, leaders);
      for (const auto &rival : rivals_)
        for (const auto &beside : m.beside) compare(mine, theirs(rival, beside.mode, m.size_bytes, leaders));
      if (leaders != fewest) compare(mine, ours(m.mode, m.size_bytes, fewest));
    }
}

}  // namespace

Status run_many_leaders(const Options &options, int repetitions, const ManyLeaders &workload, Report &report) {
  return Run(options, workload, report).run_on_fit_cores(repetitions, workload.what);
}

}  // namespace bench
