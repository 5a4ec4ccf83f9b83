// SPDX-License-Identifier: BSD-3-Clause
#include "many_leaders.hpp"

#include "repeat.hpp"

#include <map>
#include <set>

namespace bench {
namespace {

using nessie::Status;

class Run {
 public:
  Run(const Options &options, const ManyLeaders &workload, Report &report)
      : options_(options),
        workload_(workload),
        report_(report),
        network_(network_of(options.transport)),
        rivals_(rivals_here()) {}
  Status measure(int repetition);
  void add_ratios();

 private:
  Status measure_ours(const Measurement &measurement, int leaders, int repetition);
  Status measure_rivals(int leaders, int repetition);
  std::vector<Question> questions() const;

  Series ours(const Measurement &m, int leaders) const {
    return {"nessie", options_.transport, m.mode, m.size_bytes, leaders, workload_.metric, workload_.unit};
  }
  Series theirs(Rival rival, const char *mode, std::uint64_t size, int leaders) const {
    return {name_of(rival), name_of(network_), mode, size, leaders, workload_.metric, workload_.unit};
  }

  const Options &options_;
  const ManyLeaders &workload_;
  Report &report_;
  Network network_;
  std::vector<Rival> rivals_;
};

Status Run::measure_ours(const Measurement &measurement, int leaders, int repetition) {
  Team team;
  team.leaders = leaders;
  team.followers = workload_.one_target ? 1 : leaders;
  team.waiting = measurement.waiting;
  team.answer_every = measurement.answer_every;
  team.memory_bytes = measurement.size_bytes;
  auto board = board_for(team);
  auto status = run_team(options_, team, *board, measurement.lead);
  if (!status.ok()) return status;
  report_.add(ours(measurement, leaders), repetition,
              workload_.reported(measurement.figure(*board, leaders), measurement.size_bytes));
  return {};
}

/// What all measurements want beside them, each once.
std::vector<Question> Run::questions() const {
  std::map<std::string, std::set<std::uint64_t>> sizes;
  for (const auto &m : workload_.measurements)
    for (const auto &beside : m.beside) sizes[beside.question].insert(m.size_bytes);
  std::vector<Question> questions;
  for (const auto &[what, of] : sizes) questions.push_back({what, {of.begin(), of.end()}});
  return questions;
}

Status Run::measure_rivals(int leaders, int repetition) {
  for (auto rival : rivals_) {
    auto asked = questions();
    std::erase_if(asked, [&](const Question &question) { return !can_answer(rival, question.what); });
    auto answers = ask(rival, {network_, leaders, workload_.one_target}, asked);
    if (!answers) return answers.error();
    for (const auto &m : workload_.measurements)
      for (const auto &beside : m.beside)
        if (can_answer(rival, beside.question))
          report_.add(theirs(rival, beside.mode, m.size_bytes, leaders), repetition,
                      workload_.reported((*answers)[beside.question][m.size_bytes], m.size_bytes));
  }
  return {};
}

Status Run::measure(int repetition) {
  for (int leaders : workload_.leaders) {
    for (const auto &measurement : workload_.measurements)
      if (auto status = measure_ours(measurement, leaders, repetition); !status.ok()) return status;
    if (auto status = measure_rivals(leaders, repetition); !status.ok()) return status;
  }
  return {};
}

void Run::add_ratios() {
  for (int leaders : workload_.leaders)
    for (const auto &m : workload_.measurements) {
      for (auto rival : rivals_)
        for (const auto &beside : m.beside)
          report_.add_ratio(ours(m, leaders), theirs(rival, beside.mode, m.size_bytes, leaders));
      if (leaders != workload_.leaders.front()) report_.add_ratio(ours(m, leaders), ours(m, workload_.leaders.front()));
    }
}

}  // namespace

Status run_many_leaders(const Options &options, int repetitions, const ManyLeaders &workload, Report &report) {
  Run run(options, workload, report);
  auto status =
      repeat_on_fit_cores(repetitions, report, workload.what, [&](int repetition) { return run.measure(repetition); });
  if (status.ok()) run.add_ratios();
  return status;
}

}  // namespace bench
