// SPDX-License-Identifier: BSD-3-Clause
#include "staging_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr auto kRunLimit = std::chrono::seconds(180), kQuickRunLimit = std::chrono::seconds(60);
constexpr double kHopeless = 3;  ///< times as long as the other layer
constexpr const char *kNative = "pnetcdf", *kBurstBuffer = "pnetcdf-burst-buffer", *kOurs = "nessie";

struct Metric {
  const char *name, *unit;
  bool compared;
};
constexpr std::array kMetrics{Metric{"perceived_s", "s", true},
                              Metric{"durable_s", "s", true},
                              Metric{"read_s", "s", true},
                              Metric{"io_share", "1", true},
                              Metric{"perceived_MBps", "MB/s", false},
                              Metric{"durable_MBps", "MB/s", false},
                              Metric{"read_MBps", "MB/s", false},
                              Metric{"cpu_s", "s", true},
                              Metric{"memory_bytes", "B", false}};

/// All series of one way to run a case.
struct Way {
  std::string system, transport, mode;
  int processes;
  double bytes;
  Series series(const Metric &metric) const {
    return {system, transport, mode, static_cast<std::uint64_t>(bytes), processes, metric.name, metric.unit};
  }
};

template <class Samples> void add(Report &report, const Way &way, bool overlaps, const Samples &samples) {
  for (const auto &metric : kMetrics)
    for (const auto &[repetition, figures] : samples)
      if (auto figure = figures.find(metric.name);
          figure != figures.end() && (overlaps || std::string(metric.name) != "io_share"))
        report.add(way.series(metric), repetition, figure->second);
}

/// Of those metrics that both have.
void add_ratios(Report &report, const Way &ours, const Way &baseline) {
  for (const auto &metric : kMetrics)
    if (metric.compared) report.add_ratio(ours.series(metric), baseline.series(metric));
}

template <class Samples> double median(const Samples &samples, const std::string &metric) {
  std::vector<double> values;
  for (const auto &[repetition, figures] : samples) values.push_back(figures.at(metric));
  return summarise(std::move(values)).median;
}

std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }

std::string with(const std::string &mode, const std::string &variant) {
  return variant.empty() ? mode : mode + '-' + variant;
}

}  // namespace

StagingComparison::StagingComparison(const Options &options, int repetitions, int cases, Report &report)
    : report_(report),
      repetitions_(repetitions),
      verify_(options.once),
      team_(options.quick ? kQuickRunLimit : kRunLimit),
      burst_buffer_(false),  // until it has been tried
      progress_(cases * repetitions * static_cast<int>(kMpiIo.size() + kStagingModes.size() + 1)) {
  const auto why = team_.why_no_burst_buffer();
  burst_buffer_ = why.empty();
  if (burst_buffer_) return;
  const auto note = fmt::format("{} is missed: {}.", kBurstBuffer, first_line(why));
  report.note(note);
  if (options.json) fmt::print(stderr, "{}\n", note);
}

/// Runs it on each layer that is not left out. Returns the one that was fastest, this time.
Result<std::string> StagingComparison::measure_native(const StagingCase &c, int repetition, Measured &measured) {
  std::string best;
  double best_s = 0;
  for (std::string mpi_io : kMpiIo) {
    progress_.step(fmt::format("{} processes, native on {}", c.processes, mpi_io));
    if (measured.left_out.contains(mpi_io)) continue;
    auto figures = team_.run_native(c, mpi_io);
    if (!figures) {
      measured.left_out[mpi_io] = "failed: " + figures.error().message;
      continue;
    }
    const double took_s = figures->at(c.decisive);
    measured.native[mpi_io][repetition] = std::move(*figures);
    if (best.empty() || took_s < best_s) best = mpi_io, best_s = took_s;
  }
  if (best.empty()) return Error{Code::kIo, "native PnetCDF " + measured.left_out.begin()->second};
  for (const auto &[mpi_io, samples] : measured.native)
    if (repetition == 0 && samples.at(0).at(c.decisive) > kHopeless * best_s)
      measured.left_out[mpi_io] =
          fmt::format("took {:.1f} times as long as {}, and was run once", samples.at(0).at(c.decisive) / best_s, best);
  return best;
}

void StagingComparison::measure_burst_buffer(const StagingCase &c, int repetition, const std::string &mpi_io,
                                             Measured &measured) {
  progress_.step(fmt::format("{} processes, burst buffer", c.processes));
  if (!burst_buffer_) return;
  auto figures = team_.run_with_burst_buffer(c, mpi_io);
  if (figures)
    measured.burst_buffer[repetition] = std::move(*figures);
  else
    report_.note(fmt::format("{} failed: {}.", kBurstBuffer, first_line(figures.error().message)));
}

Status StagingComparison::measure_once(const StagingCase &c, int repetition, Measured &measured) {
  auto best = measure_native(c, repetition, measured);
  if (!best) return best.error();
  measure_burst_buffer(c, repetition, *best, measured);
  for (std::string mode : kStagingModes) {
    progress_.step(fmt::format("{} processes, {}", c.processes, mode));
    auto figures = team_.run_staged(c, mode, *best);
    if (!figures) return figures.error();
    measured.staged[mode][repetition] = std::move(*figures);
  }
  return {};
}

Status StagingComparison::measure(const StagingCase &c) {
  auto verified = c;
  if (verify_) verified.program.emplace_back("--verify");
  Measured measured;
  for (int repetition = 0; repetition < repetitions_; ++repetition)
    if (auto status = measure_once(verified, repetition, measured); !status.ok()) return status;
  tell(c, measured);
  return {};
}

Result<StagingComparison::Fastest> StagingComparison::fastest_native(const StagingCase &c) {
  Measured measured;
  auto best = measure_native(c, 0, measured);
  if (!best) return best.error();
  return Fastest{*best, measured.native.at(*best).at(0)};
}

/// Native PnetCDF at its best, and the others beside it.
void StagingComparison::tell(const StagingCase &c, const Measured &measured) {
  const auto seconds = [&](const std::string &mpi_io) { return median(measured.native.at(mpi_io), c.decisive); };
  std::string best, all;
  for (const auto &[mpi_io, samples] : measured.native) {
    if (best.empty() || seconds(mpi_io) < seconds(best)) best = mpi_io;
    all += fmt::format("{}{} {:.3f} s", all.empty() ? "" : ", ", mpi_io, seconds(mpi_io));
  }
  const double bytes = measured.native.at(best).begin()->second.at("bytes");
  const Way native{kNative, "file", with(best, c.variant), c.processes, bytes};
  const Way logged{kBurstBuffer, "file", with(team_.log_place(), c.variant), c.processes, bytes};
  add(report_, native, c.overlaps, measured.native.at(best));
  add(report_, logged, c.overlaps, measured.burst_buffer);
  for (const auto &mode : kStagingModes) {
    const Way ours{kOurs, "shm", with(mode, c.variant), c.processes, bytes};
    add(report_, ours, c.overlaps, measured.staged.at(mode));
    add_ratios(report_, ours, native);
    add_ratios(report_, ours, logged);
  }
  add_ratios(report_, logged, native);
  const auto where = fmt::format("{} processes{}{}", c.processes, c.variant.empty() ? "" : ", ", c.variant);
  report_.note(fmt::format("{}: native PnetCDF is faster on {} ({}: {}).", where, best, c.decisive, all));
  for (const auto &[mpi_io, why] : measured.left_out)
    report_.note(fmt::format("{}: {} {}.", where, mpi_io, first_line(why)));
}

int staging_repetitions(const Options &options) { return options.repetitions(7, 3); }

Status compare_staging(const Options &options, const std::vector<StagingCase> &cases, Report &report) {
  StagingComparison comparison(options, staging_repetitions(options), static_cast<int>(cases.size()), report);
  for (const auto &c : cases)
    if (auto status = comparison.measure(c); !status.ok()) return status;
  return {};
}

}  // namespace bench
