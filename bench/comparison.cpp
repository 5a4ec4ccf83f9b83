// SPDX-License-Identifier: BSD-3-Clause
#include "comparison.hpp"

#include "machine.hpp"

#include <fmt/format.h>

namespace bench {

using nessie::Result;
using nessie::Status;

std::vector<std::uint64_t> sizes_between(std::uint64_t first, std::uint64_t last, std::uint64_t factor) {
  std::vector<std::uint64_t> sizes;
  for (auto size = first; size <= last; size *= factor) sizes.push_back(size);
  return sizes;
}

Status Comparison::measure_all(int repetitions, const std::string &what, const std::function<void()> &bracket) {
  Progress progress(repetitions);
  bracket();
  for (repetition_ = 0; repetition_ < repetitions; ++repetition_) {
    progress.step(what);
    if (auto status = measure(); !status.ok()) return status;
    bracket();
  }
  return {};
}

Status Comparison::run(int repetitions, const std::string &what) {
  auto status = measure_all(repetitions, what, [] {});
  if (status.ok()) add_ratios();
  return status;
}

Status Comparison::run_on_fit_cores(int repetitions, const std::string &what) {
  CoreWatch watch;
  if (auto status = measure_all(repetitions, what, [&] { watch.bracket(); }); !status.ok()) return status;
  const auto unfit = watch.unfit();
  for (int repetition : unfit) report_.drop(repetition);
  report_.note(usable_cores().size() < 2
                   ? "Only one core: every message waits for a change of process."
                   : fmt::format("A cache line takes {:.2f} us from core to core; {} repetitions were left out, "
                                 "because the two cores shared a physical one.",
                                 watch.typical_us(), unfit.size()));
  add_ratios();
  return {};
}

Status Comparison::add(const Result<std::unique_ptr<Board>> &board, int clients) {
  if (!board) return board.error();
  for (const auto &figure : (*board)->lane(0).figures())
    add(ours(figure.mode.data(), figure.size_bytes, clients), figure.value);
  return {};
}

void Comparison::add(const std::string &system, const std::string &transport, const std::string &mode,
                     const FiguresBySize &measured, Convert convert) {
  for (auto [size, figure] : measured) add(series(system, transport, mode, size), convert(figure, size));
}

Status Comparison::add(const std::string &system, const std::string &transport, const std::string &mode,
                       const Result<FiguresBySize> &measured, Convert convert) {
  if (!measured) return measured.error();
  add(system, transport, mode, *measured, convert);
  return {};
}

Status Comparison::ask(const std::vector<Rival> &rivals, const Cast &cast, const std::vector<Asked> &asked) {
  for (const auto &rival : rivals) {
    std::vector<Question> questions;
    for (const auto &each : asked)
      if (can_answer(rival.library, each.question)) questions.push_back({each.question, each.sizes});
    if (questions.empty()) continue;
    auto answers = bench::ask(rival, cast, questions);
    if (!answers) return answers.error();
    for (const auto &each : asked)
      for (auto [size, figure] : (*answers)[each.question])
        add(theirs(rival, each.mode, size, cast.leaders), each.convert(figure, size));
  }
  return {};
}

}  // namespace bench
