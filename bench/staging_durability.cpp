// SPDX-License-Identifier: BSD-3-Clause
// staging-durability: what it costs a program that its files survive a server, or its node: the S3D I/O kernel under
// `nessie run --durability`, each beside `memory`; and the log's disk by itself.
#include "disk.hpp"
#include "staging_comparison.hpp"

#include <fmt/format.h>

#include <array>

namespace bench {
namespace {

using nessie::Status;

/// Of `nessie run --durability`; the first is what the others are compared with.
constexpr std::array kDurabilities{"memory", "replicated", "logged", "durable"};
constexpr int kServers = 2;  // a second copy needs another server
constexpr auto kLimit = std::chrono::seconds(180);

}  // namespace

Status staging_durability(const Options &options, Report &report) {
  StagingCase c{.processes = options.processes > 0 ? options.processes : 2,
                .program = options.once ? std::vector<std::string>{"nessie-bench-s3d", "--n", "8", "--steps", "2"}
                                        : std::vector<std::string>{"nessie-bench-s3d", "--n", "64", "--steps", "8"}};
  StagingTeam team(kLimit);
  const Scratch disk(false);
  const int repetitions = staging_repetitions(options);
  Progress progress(repetitions * static_cast<int>(kDurabilities.size() + 1));
  double bytes = 0;
  const auto series = [&](const std::string &mode, const char *metric, const char *unit) {
    return Series{"nessie", "shm", mode, static_cast<std::uint64_t>(bytes), c.processes, metric, unit};
  };
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (const std::string durability : kDurabilities) {
      progress.step(fmt::format("{} processes, {}", c.processes, durability));
      auto figures = team.run_staged(
          c, "caching", kMpiIo.back(),
          {"--servers", std::to_string(kServers), "--durability", durability, "--log", disk.path().string()});
      if (!figures) return figures.error();
      bytes = figures->at("bytes");
      for (const char *metric : {"perceived_s", "durable_s"})
        report.add(series(durability, metric, "s"), repetition, figures->at(metric));
    }
    progress.step("the log's disk by itself");
    auto took = write_to_disk(disk.path().string(), static_cast<std::uint64_t>(bytes));
    if (!took) return took.error();
    report.add({"disk", "file", "logged", static_cast<std::uint64_t>(bytes), c.processes, "perceived_s", "s"},
               repetition, *took);
  }
  for (const std::string durability : kDurabilities) {
    if (durability == kDurabilities.front()) continue;
    for (const char *metric : {"perceived_s", "durable_s"})
      report.add_ratio(series(durability, metric, "s"), series(kDurabilities.front(), metric, "s"));
  }
  report.add_ratio(series("logged", "perceived_s", "s"),
                   {"disk", "file", "logged", static_cast<std::uint64_t>(bytes), c.processes, "perceived_s", "s"});
  return {};
}

}  // namespace bench
