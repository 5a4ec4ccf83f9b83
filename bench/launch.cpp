// SPDX-License-Identifier: BSD-3-Clause
// launch: what `nessie run` adds to the run of a program; what a program perceives whose server is on another host,
// beside what the cable between them carries; how long many ranks and servers take to their first write.
#include "comparison.hpp"
#include "launch_hosts.hpp"
#include "staging_team.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Status;
using Words = std::vector<std::string>;

constexpr auto kShort = std::chrono::seconds(60), kLong = std::chrono::seconds(600);
constexpr Metric kRun{"run_ms", "ms"}, kAdded{"added_ms", "ms"}, kFirst{"first_write_ms", "ms"};

Words joined(Words words, const Words &more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words first_write(int processes, const Words &arguments) {
  return mpiexec(processes, joined({sibling("nessie-bench-first_write")}, arguments));
}

// --- what a run adds -------------------------------------------------------------------------------------------------

/// A program that does nothing, and one that only begins and ends MPI, alone and under `nessie run`.
class Added final : public Comparison {
 public:
  Added(const Options &options, Report &report) : Comparison(options, report, kRun) {}

 private:
  struct Case {
    const char *mode;
    Words program;
    int processes;
  };

  Status measure() override {
    for (const auto &each : cases_)
      if (auto status = measure(each); !status.ok()) return status;
    return {};
  }

  /// Who goes first changes: the second finds the machine as the first has left it.
  Status measure(const Case &each) {
    std::array<double, 2> took_ms{};
    for (const bool second : {false, true}) {
      const bool staged = second != (repetition() % 2 == 1);
      const auto command = staged ? joined({sibling("nessie"), "run", "--quiet", "--"}, each.program) : each.program;
      const auto run = run_program(command, kShort);
      if (!run) return run.error();
      took_ms[staged ? 1 : 0] = run->wall_s * 1e3;
    }
    add(series_of(each, true), took_ms[1]);
    add(series_of(each, false), took_ms[0]);
    add({"nessie", "shm", each.mode, 0, each.processes, kAdded.name, kAdded.unit}, took_ms[1] - took_ms[0]);
    return {};
  }

  void add_ratios() override {
    for (const auto &each : cases_) compare(series_of(each, true), series_of(each, false));
  }

  Series series_of(const Case &each, bool staged) const {
    return series(staged ? "nessie" : "program", staged ? "shm" : "none", each.mode, 0, each.processes);
  }

  const std::vector<Case> cases_{{"nothing", {"true"}, 1}, {"mpi-only", first_write(2, {"--mpi-only"}), 2}};
};

// --- the first write -------------------------------------------------------------------------------------------------

/// Many ranks, and many servers: from the start to when MPI has begun, and to when all have written a first piece.
class FirstWrite final : public Comparison {
 public:
  FirstWrite(const Options &options, Report &report, int processes, int servers)
      : Comparison(options, report, kFirst), processes_(processes), servers_(servers) {}

 private:
  enum class Way { kMpiOnly, kNative, kStaged };
  static constexpr std::array kWays{Way::kMpiOnly, Way::kNative, Way::kStaged};

  Status measure() override {
    for (std::size_t turn = 0; turn < kWays.size(); ++turn)
      if (auto status = measure(kWays[(turn + static_cast<std::size_t>(repetition())) % kWays.size()]); !status.ok())
        return status;
    return {};
  }

  Status measure(Way way) {
    files_.clear();
    const auto summary = (files_.path() / "summary.json").string();
    auto command = way == Way::kMpiOnly ? first_write(processes_, {"--mpi-only"})
                                        : first_write(processes_, {"--prefix", (files_.path() / "out").string()});
    if (way == Way::kStaged)
      command = joined({sibling("nessie"), "run", "--quiet", "--mode", "caching", "--servers", std::to_string(servers_),
                        "--json", summary, "--"},
                       command);
    const auto began = std::chrono::system_clock::now();
    const auto run = run_program(command, kLong);
    if (!run) return run.error();
    if (way == Way::kStaged)
      if (auto status = check_staged(summary); !status.ok()) return status;
    add(series_of(way), std::chrono::duration<double, std::milli>(run->last_output - began).count());
    return {};
  }

  static Status check_staged(const std::string &path) {
    std::ifstream file(path);
    const auto summary = nlohmann::json::parse(file, nullptr, false);
    if (!summary.is_discarded() && summary.value("bytes_staged", 0.0) > 0) return {};
    return Error{Code::kIo, "nothing was staged; `nessie run` says of it: " + summary.dump()};
  }

  void add_ratios() override {
    for (const Way way : {Way::kStaged, Way::kNative}) compare(series_of(way), series_of(Way::kMpiOnly));
    compare(series_of(Way::kStaged), series_of(Way::kNative));
  }

  Series series_of(Way way) const {
    if (way == Way::kMpiOnly) return series("openmpi", "none", "mpi-only", 0, processes_);
    if (way == Way::kNative) return series("pnetcdf", "file", "first-write", 0, processes_);
    return series("nessie", "shm", fmt::format("first-write-{}-servers", servers_), 0, processes_);
  }

  const int processes_, servers_;
  const Scratch files_{false};
};

/// Of the memory that is free, a rank and a server take so much.
constexpr double kRankBytes = 40e6, kServerBytes = 100e6;

double free_bytes() {
  return static_cast<double>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

Status many_ranks(const Options &options, Report &report) {
  int processes = options.once ? 2 : options.quick ? 64 : 256, servers = options.once ? 2 : options.quick ? 4 : 16;
  while (options.processes == 0 && processes > 2 && processes * kRankBytes + servers * kServerBytes > free_bytes())
    processes /= 2, servers = std::max(1, servers / 2);
  if (options.processes > 0) processes = options.processes;
  if (options.servers > 0) servers = options.servers;
  const auto what = fmt::format("{} processes, {} servers", processes, servers);
  return FirstWrite(options, report, processes, servers).run(options.repetitions(3, 3), what);
}

}  // namespace

Status launch(const Options &options, Report &report) {
  if (auto status = Added(options, report).run(options.repetitions(30, 15), "what a run adds"); !status.ok())
    return status;
  if (auto status = compare_hosts(options, report); !status.ok()) return status;
  return many_ranks(options, report);
}

}  // namespace bench
