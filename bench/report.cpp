// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  auto half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> values_of(const std::map<int, double> &samples) {
  std::vector<double> values;
  for (const auto &[repetition, value] : samples) values.push_back(value);
  return values;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

/// Four digits, and no exponent, whatever the magnitude.
std::string figure(double value) {
  auto digits = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 6));
}

}  // namespace

Summary summarise(std::vector<double> samples) {
  Summary summary;
  summary.n = samples.size();
  if (samples.empty()) return summary;
  auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  summary.min = *low;
  summary.max = *high;
  summary.median = middle(samples);
  for (auto &sample : samples) sample = std::abs(sample - summary.median);
  summary.mad = middle(samples);
  return summary;
}

void Report::add(const Series &series, int repetition, double value) {
  auto [entry, added] = samples_.try_emplace(series);
  if (added) order_.push_back(series);
  entry->second[repetition] = value;
}

void Report::add_ratio(const Series &ours, const Series &baseline) {
  if (samples_.contains(ours) && samples_.contains(baseline)) ratios_.push_back({ours, baseline});
}

void Report::drop(int repetition) {
  for (auto &[series, samples] : samples_) samples.erase(repetition);
}

double Report::median(const Series &series) const {
  auto entry = samples_.find(series);
  return entry == samples_.end() ? 0 : middle(values_of(entry->second));
}

double Report::median_ratio(const Ratio &ratio) const {
  std::vector<double> ratios;
  const auto &baseline = samples_.at(ratio.baseline);
  for (const auto &[repetition, value] : samples_.at(ratio.ours)) {
    auto other = baseline.find(repetition);
    if (other != baseline.end() && other->second > 0) ratios.push_back(value / other->second);
  }
  return middle(ratios);
}

std::string Report::json() const {
  std::string text;
  for (const auto &s : order_) {
    auto summary = summarise(values_of(samples_.at(s)));
    text += fmt::format(
        R"({{"bench": "{}", "system": "{}", "transport": "{}", "mode": "{}", "size_bytes": {}, "clients": {}, )"
        R"("metric": "{}", "unit": "{}", "median": {:.6g}, "mad": {:.6g}, "min": {:.6g}, "max": {:.6g}, "n": {}}})"
        "\n",
        bench_, s.system, s.transport, s.mode, s.size_bytes, s.clients, s.metric, s.unit, summary.median, summary.mad,
        summary.min, summary.max, summary.n);
  }
  for (const auto &r : ratios_)
    text += fmt::format(R"({{"bench": "{}", "ratio": "{}/{}", "metric": "{}", "size_bytes": {}, "clients": {}, )"
                        R"("median": {:.4g}, "mode": "{}", "against": "{}"}})"
                        "\n",
                        bench_, r.ours.system, r.baseline.system, r.ours.metric, r.ours.size_bytes, r.ours.clients,
                        median_ratio(r), r.ours.mode, r.baseline.mode);
  return text;
}

std::string Report::table() const {
  auto text = fmt::format("{:<20} {:<22} {:>8} {:>7}  {:<15} {:>10} {:>9} {:>10} {:>10} {:>3}\n", "system", "mode",
                          "size", "clients", "metric", "median", "mad", "min", "max", "n");
  for (const auto &s : order_) {
    auto summary = summarise(values_of(samples_.at(s)));
    text += fmt::format("{:<20} {:<22} {:>8} {:>7}  {:<15} {:>10} {:>9} {:>10} {:>10} {:>3}\n", s.system, s.mode,
                        size_text(s.size_bytes), s.clients, s.metric, figure(summary.median), figure(summary.mad),
                        figure(summary.min), figure(summary.max), summary.n);
  }
  if (!ratios_.empty())
    text += fmt::format("\n{:<28} {:<22} {:>8} {:>7}  {:<15} {:>10}  {}\n", "ratio", "mode", "size", "clients",
                        "metric", "median", "against");
  for (const auto &r : ratios_)
    text += fmt::format("{:<28} {:<22} {:>8} {:>7}  {:<15} {:>10.3f}  {}\n", r.ours.system + "/" + r.baseline.system,
                        r.ours.mode, size_text(r.ours.size_bytes), r.ours.clients, r.ours.metric, median_ratio(r),
                        r.baseline.mode);
  for (const auto &note : notes_) text += "\n" + note;
  return text + (notes_.empty() ? "" : "\n");
}

}  // namespace bench
