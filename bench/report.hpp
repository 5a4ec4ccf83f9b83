// SPDX-License-Identifier: BSD-3-Clause
// What a workload measured: samples of named series, and the ratios between them; printed as a table or as JSON lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// Names a series of samples. The words are those of docs/benchmarks.md.
struct Series {
  std::string system, transport, mode;
  std::uint64_t size_bytes = 0;
  int clients = 1;
  std::string metric, unit;
  auto operator<=>(const Series &) const = default;  // NOLINT(modernize-use-nullptr)
};

/// One quantity for each size.
using FiguresBySize = std::map<std::uint64_t, double>;

/// Middle, spread and extremes of a set of samples. `mad`: the median absolute deviation from the median.
struct Summary {
  double median = 0, mad = 0, min = 0, max = 0;
  std::size_t n = 0;
};

Summary summarise(std::vector<double> samples);

class Report {
 public:
  explicit Report(std::string bench) : bench_(std::move(bench)) {}

  /// One sample, taken in the given repetition of the run. Series are printed in the order of their first sample.
  void add(const Series &series, int repetition, double value);
  /// Asks for ours / baseline: the median over the repetitions that have both.
  void add_ratio(const Series &ours, const Series &baseline);
  /// Forgets a repetition whose conditions were wrong.
  void drop(int repetition);
  /// A sentence for people, printed below the table.
  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }

  double median(const Series &series) const;
  std::string json() const;
  std::string table() const;

 private:
  struct Ratio {
    Series ours, baseline;
  };
  double median_ratio(const Ratio &ratio) const;

  std::string bench_;
  std::vector<Series> order_;
  std::map<Series, std::map<int, double>> samples_;
  std::vector<Ratio> ratios_;
  std::vector<std::string> notes_;
};

}  // namespace bench
