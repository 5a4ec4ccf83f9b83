// SPDX-License-Identifier: BSD-3-Clause
// What most workloads are: repetition by repetition they measure Nessie and others, in one metric, and in the end set
// the others beside it.
#pragma once

#include "crew.hpp"
#include "options.hpp"
#include "rivals.hpp"

#include <nessie/result.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Makes of what was measured what the report says.
using Convert = double (*)(double measured, std::uint64_t size_bytes);
inline double as_measured(double measured, std::uint64_t) { return measured; }
inline double half(double measured, std::uint64_t) { return measured / 2; }
/// Of microseconds for each transfer; and for two of them at once.
inline double megabytes_per_s(double us, std::uint64_t size_bytes) { return static_cast<double>(size_bytes) / us; }
inline double megabytes_both_ways(double us, std::uint64_t size_bytes) { return 2 * megabytes_per_s(us, size_bytes); }
/// Of transfers a second.
inline double megabytes_counted(double per_s, std::uint64_t size_bytes) {
  return per_s * static_cast<double>(size_bytes) / 1e6;
}

/// From one to the other, each `factor` times the one before.
std::vector<std::uint64_t> sizes_between(std::uint64_t first, std::uint64_t last, std::uint64_t factor);

struct Metric {
  const char *name, *unit;
};

/// What rivals are asked, and the mode under which they are reported.
struct Asked {
  std::string question;
  std::vector<std::uint64_t> sizes;
  std::string mode;
  Convert convert = as_measured;
};

class Comparison {
 public:
  virtual ~Comparison() = default;
  Comparison(const Comparison &) = delete;
  /// Measures so many times, then adds the ratios. `what`: for the terminal. Returns the first error.
  nessie::Status run(int repetitions, const std::string &what);
  /// The same, for what two cores say to each other: each repetition is bracketed by a ping-pong of a cache line. Those
  /// during which the cores were threads of one physical core are taken out of the report; a note says how many.
  nessie::Status run_on_fit_cores(int repetitions, const std::string &what);

 protected:
  Comparison(const Options &options, Report &report, Metric metric)
      : options_(options), report_(report), network_(network_of(options.transport)), metric_(metric) {}
  /// One repetition.
  virtual nessie::Status measure() = 0;
  /// When all repetitions that count are in the report.
  virtual void add_ratios() = 0;
  virtual Metric metric_of(const std::string &) const { return metric_; }

  Series series(const std::string &system, const std::string &transport, const std::string &mode, std::uint64_t size,
                int clients = 1) const {
    const auto metric = metric_of(mode);
    return {system, transport, mode, size, clients, metric.name, metric.unit};
  }
  Series ours(const std::string &mode, std::uint64_t size, int clients = 1) const {
    return series("nessie", options_.transport, mode, size, clients);
  }
  Series theirs(const Rival &rival, const std::string &mode, std::uint64_t size, int clients = 1) const {
    return series(name_of(rival.library), name_of(rival.network), rival.mode(mode), size, clients);
  }

  void add(const Series &series, double value) { report_.add(series, repetition_, value); }
  /// What the first member of a crew has left. The crew's error, if it had one.
  nessie::Status add(const nessie::Result<std::unique_ptr<Board>> &board, int clients = 1);
  void add(const std::string &system, const std::string &transport, const std::string &mode,
           const FiguresBySize &measured, Convert convert = as_measured);
  nessie::Status add(const std::string &system, const std::string &transport, const std::string &mode,
                     const nessie::Result<FiguresBySize> &measured, Convert convert = as_measured);
  /// Asks each rival what it can answer of that, and adds the answers.
  nessie::Status ask(const std::vector<Rival> &rivals, const Cast &cast, const std::vector<Asked> &asked);
  void compare(const Series &ours, const Series &baseline) { report_.add_ratio(ours, baseline); }
  int repetition() const { return repetition_; }

  const Options &options_;
  Report &report_;
  const Network network_;

 private:
  nessie::Status measure_all(int repetitions, const std::string &what, const std::function<void()> &bracket);

  const Metric metric_;
  int repetition_ = 0;
};

}  // namespace bench
