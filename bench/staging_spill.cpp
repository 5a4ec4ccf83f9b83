// SPDX-License-Identifier: BSD-3-Clause
// staging-spill: a program whose output is a hundred times the server's memory, under `nessie run --spill`; beside the
// program natively, and the spill's disk by itself. staging-recovery: how long a program waits whose server is killed,
// and how fast the next one takes over what is in a log, or in another server's memory.
#include "disk.hpp"
#include "page_aligned.hpp"
#include "staging_comparison.hpp"

#include <base/clock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace bench {
namespace {

using nessie::Result;
using nessie::Status;

constexpr int kTimesMemory = 100;
constexpr auto kLimit = std::chrono::seconds(300);

StagingCase contiguous(int processes, std::uint64_t mib) {
  return {.processes = processes,
          .program = {"nessie-bench-contiguous", "--independent", "--transfers",
                      std::to_string(mib / static_cast<std::uint64_t>(processes))}};
}

double megabytes_per_s(std::uint64_t bytes, double seconds) { return static_cast<double>(bytes) / seconds / 1e6; }

}  // namespace

Status staging_spill(const Options &options, Report &report) {
  const std::uint64_t memory_mib = options.once ? 1 : options.quick ? 8 : 16, mib = memory_mib * kTimesMemory;
  const auto c = contiguous(options.processes > 0 ? options.processes : 2, mib);
  StagingTeam team(kLimit);
  const Scratch spill(false);
  const int repetitions = staging_repetitions(options);
  Progress progress(3 * repetitions);
  std::uint64_t bytes = 0;
  const auto series = [&](const char *system, const char *transport, const char *metric) {
    return Series{system, transport, "spill", bytes, c.processes, metric, "MB/s"};
  };
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    progress.step("staged");
    const auto staged = team.run_staged(c, "caching", kMpiIo.back(),
                                        {"--memory", fmt::format("{}M", memory_mib), "--spill", spill.path().string()});
    if (!staged) return staged.error();
    bytes = static_cast<std::uint64_t>(staged->at("bytes"));
    progress.step("natively");
    const auto native = team.run_native(c, kMpiIo.back());
    if (!native) return native.error();
    progress.step("the spill's disk by itself");
    const auto disk_s = write_to_disk(spill.path().string(), bytes);
    if (!disk_s) return disk_s.error();
    for (const char *metric : {"perceived_MBps", "durable_MBps"}) {
      const double disk = megabytes_per_s(bytes, *disk_s);
      report.add(series("nessie", "shm", metric), repetition, staged->at(metric));
      report.add(series("pnetcdf", "file", metric), repetition, native->at(metric));
      report.add(series("disk", "file", metric), repetition, disk);
      report.add(series("slower", "file", metric), repetition, std::min(disk, native->at(metric)));
    }
  }
  for (const char *metric : {"perceived_MBps", "durable_MBps"})
    report.add_ratio(series("nessie", "shm", metric), series("slower", "file", metric));
  return {};
}

// --- recovery --------------------------------------------------------------------------------------------------------

namespace {

/// Ends the first server of the `nessie run` that the program runs under.
constexpr const char *kKillServer =
    "for p in $(cat /proc/$NESSIE_BENCH_RUN/task/*/children); do "
    "if [ \"$(cat /proc/$p/comm)\" = nessied ]; then kill -KILL $p; break; fi; done";

struct Kept {
  const char *durability;
  int servers;
};

/// The longest that a call takes of a program whose server is killed when it has put so much.
Result<double> wait_of(StagingTeam &team, const Kept &kept, const std::string &log, int processes, std::uint64_t mib) {
  auto c = contiguous(processes, mib);
  c.program.front() = "nessie-bench-outage";
  c.between = kKillServer;
  const auto figures = team.run_staged(
      c, "caching", kMpiIo.back(),
      {"--servers", std::to_string(kept.servers), "--memory", "4G", "--durability", kept.durability, "--log", log});
  return figures ? Result<double>(figures->at("wait_s")) : figures.error();
}

double seconds_to_copy(std::uint64_t bytes) {
  const PageAligned<std::byte> from(bytes);
  PageAligned<std::byte> to(bytes);
  const auto begun = nessie::Clock::now();
  std::memcpy(to.data(), from.data(), bytes);
  return std::chrono::duration<double>(nessie::Clock::now() - begun).count();
}

}  // namespace

Status staging_recovery(const Options &options, Report &report) {
  const std::uint64_t few_mib = 2, many_mib = options.once ? 16 : options.quick ? 128 : 1000;
  const int processes = options.processes > 0 ? options.processes : 2;
  const double least_s = 1e-3;
  StagingTeam team(kLimit);
  const Scratch log(false);
  const int repetitions = staging_repetitions(options);
  Progress progress(5 * repetitions);
  const auto series = [&](const Kept &kept, const char *system, const char *metric, std::uint64_t bytes) {
    return Series{system, std::string(system) == "nessie" ? "shm" : "memory", kept.durability, bytes, processes,
                  metric, std::string(metric) == "wait_s" ? "s" : "MB/s"};
  };
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (const Kept kept : {Kept{"logged", 1}, Kept{"replicated", 2}}) {
      const auto of_one = [&](std::uint64_t mib) { return (mib << 20) / static_cast<std::uint64_t>(kept.servers); };
      double wait_s[2] = {};
      for (int i = 0; i < 2; ++i) {
        const auto mib = i == 0 ? few_mib : many_mib;
        progress.step(fmt::format("{}, {} MiB", kept.durability, mib));
        const auto waited = wait_of(team, kept, log.path().string(), processes, mib);
        if (!waited) return waited.error();
        report.add(series(kept, "nessie", "wait_s", of_one(mib)), repetition, wait_s[i] = *waited);
      }
      const auto bytes = of_one(many_mib) - of_one(few_mib);
      report.add(series(kept, "nessie", "recovery_MBps", bytes), repetition,
                 megabytes_per_s(bytes, std::max(least_s, wait_s[1] - wait_s[0])));
      const bool is_logged = std::string(kept.durability) == "logged";
      const auto by_itself = is_logged ? read_from_disk(log.path().string(), bytes) : Result(seconds_to_copy(bytes));
      if (!by_itself) return by_itself.error();
      const auto *system = is_logged ? "disk" : "memcpy";
      report.add(series(kept, system, "recovery_MBps", bytes), repetition, megabytes_per_s(bytes, *by_itself));
      if (repetition == 0)
        report.add_ratio(series(kept, "nessie", "recovery_MBps", bytes), series(kept, system, "recovery_MBps", bytes));
    }
  }
  return {};
}

}  // namespace bench
