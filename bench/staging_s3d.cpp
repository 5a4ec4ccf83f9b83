// SPDX-License-Identifier: BSD-3-Clause
// staging-s3d: what a simulation's checkpoints cost it, natively and staged. The program is
// examples/clients/checkpoint.c, which knows nothing of Nessie. Native PnetCDF runs on both of Open MPI's MPI-IO
// implementations; the faster one counts.
#include "child.hpp"
#include "options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
namespace fs = std::filesystem;

const std::vector<int> kProcesses{2, 4, 8, 16};
const std::vector<int> kQuickProcesses{8};
const std::vector<int> kOnceProcesses{2};
constexpr std::array<const char *, 2> kMpiIo{"ompio", "romio321"};
constexpr std::array<const char *, 2> kModes{"direct", "caching"};
constexpr auto kRunLimit = std::chrono::seconds(180);

struct Kernel {
  std::string n = "32", steps = "8", compute_ms = "20";
};

/// One run of the program: what it saw, and when everything was in its files.
struct Timing {
  double bytes = 0, perceived_s = 0, durable_s = 0, memory_bytes = 0;
};

/// A folder for checkpoints that goes when we go.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "nessie-bench-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  Scratch(const Scratch &) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path &path() const { return path_; }
  void clear() const {
    for (const auto &entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
  }

 private:
  fs::path path_;
};

std::vector<std::string> kernel_command(const Kernel &kernel, const Scratch &scratch) {
  return {sibling("nessie-bench-s3d"),
          "--n",
          kernel.n,
          "--steps",
          kernel.steps,
          "--compute-ms",
          kernel.compute_ms,
          "--prefix",
          (scratch.path() / "s3d").string()};
}

/// The figures of the program's last line: "result bytes=… io_s=… run_s=…".
Result<Timing> read_result(const std::string &output) {
  auto at = output.rfind("result ");
  std::istringstream words(at == std::string::npos ? "" : output.substr(at));
  std::map<std::string, double> figures;
  for (std::string word; words >> word;)
    if (auto equals = word.find('='); equals != std::string::npos)
      figures[word.substr(0, equals)] = std::strtod(word.c_str() + equals + 1, nullptr);
  if (!figures.contains("run_s")) return Error{Code::kIo, "the checkpoint program printed no result:\n" + output};
  return Timing{figures["bytes"], figures["io_s"], figures["run_s"], 0};
}

Result<Timing> run_native(int processes, const std::string &mpi_io, const Kernel &kernel, const Scratch &scratch) {
  auto run = run_program(mpiexec(processes, kernel_command(kernel, scratch), {"--mca", "io", mpi_io}), kRunLimit);
  if (!run) return run.error();
  return read_result(run->output);
}

/// The same command under `nessie run`. The time until all is in the files: the program's own, and what `nessie run`
/// then waited for the drain.
Result<Timing> run_staged(int processes, const std::string &mode, const std::string &mpi_io, const Kernel &kernel,
                          const Scratch &scratch) {
  auto summary_path = (scratch.path() / "summary.json").string();
  std::vector<std::string> command{sibling("nessie"), "run", "--quiet", "--mode", mode, "--json", summary_path, "--"};
  auto program = mpiexec(processes, kernel_command(kernel, scratch), {"--mca", "io", mpi_io});
  command.insert(command.end(), program.begin(), program.end());
  auto run = run_program(command, kRunLimit);
  if (!run) return run.error();
  auto timing = read_result(run->output);
  if (!timing) return timing;
  std::ifstream file(summary_path);
  auto summary = nlohmann::json::parse(file, nullptr, false);
  if (summary.is_discarded()) return Error{Code::kIo, "`nessie run` left no summary in " + summary_path};
  if (summary.value("bytes_staged", 0.0) < timing->bytes)
    return Error{Code::kIo, "not everything was staged; `nessie run` without --quiet says why"};
  timing->durable_s += summary.value("drain_s", 0.0);
  timing->memory_bytes = summary.value("memory_high_bytes", 0.0);
  return timing;
}

struct Case {
  std::string system, transport, mode;
  int processes;
  Series series(std::string metric, std::string unit, double bytes) const {
    return {system, transport, mode, static_cast<std::uint64_t>(bytes), processes, std::move(metric), std::move(unit)};
  }
};

void add(Report &report, const Case &c, int repetition, const Timing &timing) {
  auto sample = [&](const char *metric, const char *unit, double value) {
    report.add(c.series(metric, unit, timing.bytes), repetition, value);
  };
  sample("perceived_s", "s", timing.perceived_s);
  sample("durable_s", "s", timing.durable_s);
  sample("perceived_MBps", "MB/s", timing.bytes / timing.perceived_s / 1e6);
  sample("durable_MBps", "MB/s", timing.bytes / timing.durable_s / 1e6);
  if (timing.memory_bytes > 0) sample("memory_bytes", "B", timing.memory_bytes);
}

/// All timings of one number of processes, interleaved: native on each MPI-IO, then staged in each mode.
struct Measured {
  std::map<std::string, std::vector<Timing>> native, staged;
};

Result<Measured> measure(int processes, int repetitions, const Kernel &kernel, const Scratch &scratch,
                         Progress &progress) {
  Measured measured;
  auto keep = [&](std::map<std::string, std::vector<Timing>> &timings, const std::string &name,
                  Result<Timing> timing) -> Status {
    if (!timing) return timing.error();
    timings[name].push_back(*timing);
    return {};
  };
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::string mpi_io : kMpiIo) {
      progress.step(fmt::format("{} processes, native on {}", processes, mpi_io));
      scratch.clear();
      if (auto status = keep(measured.native, mpi_io, run_native(processes, mpi_io, kernel, scratch)); !status.ok())
        return status.error();
    }
    const auto latest = [&](const char *mpi_io) { return measured.native[mpi_io].back().perceived_s; };
    const std::string best = *std::ranges::min_element(kMpiIo, {}, latest);
    for (std::string mode : kModes) {
      progress.step(fmt::format("{} processes, {}", processes, mode));
      scratch.clear();
      if (auto status = keep(measured.staged, mode, run_staged(processes, mode, best, kernel, scratch)); !status.ok())
        return status.error();
    }
  }
  return measured;
}

double median_perceived(const std::vector<Timing> &timings) {
  std::vector<double> seconds;
  for (const auto &timing : timings) seconds.push_back(timing.perceived_s);
  return summarise(std::move(seconds)).median;
}

/// Native PnetCDF at its best, and ours beside it.
void tell(const Measured &measured, int processes, Report &report) {
  double ompio = median_perceived(measured.native.at(kMpiIo[0])),
         romio = median_perceived(measured.native.at(kMpiIo[1]));
  std::string best = kMpiIo[romio < ompio ? 1 : 0];
  Case native{"pnetcdf", "file", best, processes};
  auto add_all = [&](const Case &c, const std::vector<Timing> &timings) {
    for (std::size_t i = 0; i < timings.size(); ++i) add(report, c, static_cast<int>(i), timings[i]);
  };
  add_all(native, measured.native.at(best));
  double bytes = measured.native.at(best).front().bytes;
  for (const auto &mode : kModes) {
    Case ours{"nessie", "shm", mode, processes};
    add_all(ours, measured.staged.at(mode));
    for (const char *metric : {"perceived_s", "durable_s"})
      report.add_ratio(ours.series(metric, "s", bytes), native.series(metric, "s", bytes));
  }
  report.note(
      fmt::format("{} processes: native PnetCDF is faster on {} (perceived: ompio {:.3f} s, romio321 {:.3f} s).",
                  processes, best, ompio, romio));
}

}  // namespace

Status staging_s3d(const Options &options, Report &report) {
  auto list = options.once ? kOnceProcesses : options.quick ? kQuickProcesses : kProcesses;
  if (options.processes > 0) list = {options.processes};
  Kernel kernel;
  if (options.once) kernel = {"8", "2", "1"};
  Scratch scratch;
  int repetitions = options.repetitions(7, 5);
  Progress progress(static_cast<int>(list.size()) * repetitions * 4);
  for (int processes : list) {
    auto measured = measure(processes, repetitions, kernel, scratch, progress);
    if (!measured) return measured.error();
    tell(*measured, processes, report);
  }
  return {};
}

}  // namespace bench
