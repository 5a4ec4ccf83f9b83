// SPDX-License-Identifier: BSD-3-Clause
// staging-streams: what it costs a program that its files are streams: the S3D I/O kernel under `nessie run --stream`,
// with nobody who looks, and with all that it writes recorded in another file meanwhile; each beside the same without.
#include "staging_comparison.hpp"

#include <fmt/format.h>

#include <array>

namespace bench {
namespace {

using nessie::Status;

constexpr auto kLimit = std::chrono::seconds(180);
/// The files that the program writes, as one stream.
constexpr const char *kPattern = "out.*.nc";

struct Way {
  const char *name;
  bool is_stream, is_recorded;
};
/// The first is what the others are compared with.
constexpr std::array kWays{Way{"caching", false, false}, Way{"unwatched", true, false}, Way{"recorded", true, true}};
constexpr std::array kMetrics{"perceived_s", "durable_s", "cpu_s"};

}  // namespace

Status staging_streams(const Options &options, Report &report) {
  StagingCase c{.processes = options.processes > 0 ? options.processes : 2,
                .program = options.once ? std::vector<std::string>{"nessie-bench-s3d", "--n", "8", "--steps", "2"}
                                        : std::vector<std::string>{"nessie-bench-s3d", "--n", "64", "--steps", "8",
                                                                   "--compute-ms", "20"}};
  StagingTeam team(kLimit);
  const int repetitions = staging_repetitions(options);
  Progress progress(repetitions * static_cast<int>(kWays.size()));
  double bytes = 0;
  const auto series = [&](const Way &way, const char *metric) {
    return Series{"nessie", "shm", way.name, static_cast<std::uint64_t>(bytes), c.processes, metric, "s"};
  };
  for (int repetition = 0; repetition < repetitions; ++repetition)
    for (std::size_t turn = 0; turn < kWays.size(); ++turn) {  // each way is first, second, … as often as the others
      const auto &way = kWays[(turn + static_cast<std::size_t>(repetition)) % kWays.size()];
      progress.step(fmt::format("{} processes, {}", c.processes, way.name));
      c.recorded = way.is_recorded ? kPattern : "";
      const auto stream = fmt::format("--stream={}", kPattern);
      auto figures = team.run_staged(c, "caching", kMpiIo.back(),
                                     way.is_stream ? std::vector{stream} : std::vector<std::string>{});
      if (!figures) return figures.error();
      bytes = figures->at("bytes");
      for (const char *metric : kMetrics) report.add(series(way, metric), repetition, figures->at(metric));
    }
  for (const auto &way : kWays)
    for (const char *metric : kMetrics)
      if (way.is_stream) report.add_ratio(series(way, metric), series(kWays.front(), metric));
  return {};
}

}  // namespace bench
