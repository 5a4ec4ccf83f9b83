// SPDX-License-Identifier: BSD-3-Clause
// Tables of what a process has counted.
#include "inspector.hpp"

#include <base/config.hpp>
#include <base/printable.hpp>
#include <nssi/statistics.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace nessie::cli {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostCallers = 16;

/// Rows of words, their columns below each other; the first one to the left, the others to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heads) { add(std::move(heads)); }
  void add(std::vector<std::string> words) { rows_.push_back(std::move(words)); }
  bool is_empty() const { return rows_.size() < 2; }
  std::string text() const {
    std::string result;
    for (const auto &row : rows_) {
      result += "  ";
      for (std::size_t i = 0; i < row.size(); ++i)
        result += i == 0 ? fmt::format("{:<{}}", row[i], width(i)) : fmt::format("  {:>{}}", row[i], width(i));
      result += '\n';
    }
    return result;
  }

 private:
  std::size_t width(std::size_t column) const {
    std::size_t widest = 0;
    for (const auto &row : rows_) widest = std::max(widest, row[column].size());
    return widest;
  }
  std::vector<std::vector<std::string>> rows_;
};

/// Of a list of JSON objects, the one that agrees with `it` in those fields; null: there is none.
Json same_in(const Json &list, const Json &it, std::initializer_list<const char *> fields) {
  for (const auto &each : list)
    if (std::ranges::all_of(fields, [&](const char *field) { return each[field] == it[field]; })) return each;
  return nullptr;
}

std::uint64_t number(const Json &it, const char *field) { return it.is_null() ? 0 : it.value(field, std::uint64_t{0}); }

/// What was added since.
std::uint64_t more(const Json &now, const Json &before, const char *field) {
  const auto a = number(now, field), b = number(before, field);
  return a > b ? a - b : 0;
}

std::uint64_t errors_of(const Json &it) {
  std::uint64_t sum = 0;
  if (!it.is_null())
    for (const auto &[code, count] : it["errors"].items()) sum += count.get<std::uint64_t>();
  return sum;
}

/// Without what was counted before. The buckets' bounds may have been computed a little differently.
nssi::TimeHistogram times_since(const Json &now, const Json &before) {
  nssi::TimeHistogram result;
  for (const auto &bucket : now["buckets"]) {
    auto [bound, count] = std::pair{bucket[0].get<std::uint64_t>(), bucket[1].get<std::uint64_t>()};
    if (!before.is_null())
      for (const auto &old : before["buckets"])
        if (const auto other = old[0].get<std::uint64_t>(); other + other / 16 >= bound && bound + bound / 16 >= other)
          count -= std::min(count, old[1].get<std::uint64_t>());
    if (count == 0) continue;
    result.buckets.push_back({bound, count});
    result.count += count;
    result.max_ns = bound;
  }
  return result;
}

std::string time_text(std::uint64_t ns) {
  if (ns < 1000) return fmt::format("{}ns", ns);
  if (ns < 1000'000) return fmt::format("{:.1f}us", static_cast<double>(ns) / 1e3);
  if (ns < 1000'000'000) return fmt::format("{:.1f}ms", static_cast<double>(ns) / 1e6);
  return fmt::format("{:.1f}s", static_cast<double>(ns) / 1e9);
}

/// "1.2us 3.4us": the time of half of them, and of 99 in a hundred.
std::string times_text(const Json &now, const Json &before, const char *field) {
  if (!now.contains(field)) return "-";  // of a process with an older Nessie
  const auto times = times_since(now[field], before.is_null() ? Json() : before[field]);
  if (times.count == 0) return "-";
  return fmt::format("{} {}", time_text(times.percentile_ns(0.5)), time_text(times.percentile_ns(0.99)));
}

std::string rate_text(std::uint64_t count, double seconds) {
  return seconds > 0 ? fmt::format("{:.0f}", static_cast<double>(count) / seconds) : "-";
}

double seconds_since(const Json &now, const Json &before) {
  return static_cast<double>(more(now, before, "uptime_ns")) / 1e9;
}

Json list_of(const Json &it, const char *field) {
  return it.is_object() ? it.value(field, Json::array()) : Json::array();
}

/// Its name; with whose it is, if others that were called have that name, too.
std::string name_of(const Json &it, const Json &all) {
  auto name = it["name"].get<std::string>();
  const auto called_so = std::ranges::count_if(
      all, [&](const Json &each) { return each["name"] == it["name"] && number(each, "calls") != 0; });
  if (called_so < 2) return name;
  return fmt::format("{} ({:#x}.{}, provider {})", name, number(it, "program"), number(it, "version"),
                     number(it, "provider"));
}

std::string describe_operations(const Json &now, const Json &before) {
  Table table({"operation", "calls", "calls/s", "errors", "queued p50 p99", "executed p50 p99", "transfer p50 p99",
               "in", "out"});
  const auto seconds = seconds_since(now, before);
  const auto old_ones = list_of(before, "operations");
  for (const auto &it : now["operations"]) {
    const auto old = same_in(old_ones, it, {"program", "version", "provider", "op"});
    if (number(it, "calls") == 0) continue;
    const auto in = more(it, old, "args_bytes") + more(it, old, "pulled_bytes") + more(it, old, "viewed_bytes");
    table.add({name_of(it, now["operations"]), std::to_string(more(it, old, "calls")),
               rate_text(more(it, old, "calls"), seconds), std::to_string(errors_of(it) - errors_of(old)),
               times_text(it, old, "queueing"), times_text(it, old, "execution"), times_text(it, old, "transfer"),
               format_size(in), format_size(more(it, old, "result_bytes") + more(it, old, "pushed_bytes"))});
  }
  return table.is_empty() ? "  no operation was called\n" : table.text();
}

std::string limit_text(std::uint64_t limit) { return limit == 0 ? "no limit" : std::to_string(limit); }

std::string describe_services(const Json &now) {
  std::string text;
  for (const auto &it : now["services"]) {
    const auto limit = number(it["limits"], "bytes");
    text +=
        fmt::format("  program {:#x}.{}, provider {}: {} requests in progress (limit {}), {} ({}); {} callers wait\n",
                    number(it, "program"), number(it, "version"), number(it, "provider"), number(it, "requests"),
                    limit_text(number(it["limits"], "requests")), format_size(number(it, "bytes")),
                    limit == 0 ? "no limit" : "limit " + format_size(limit), number(it, "callers_waiting"));
  }
  return text;
}

std::string describe_callers(const Json &now, const Json &before) {
  Table table({"caller", "over", "calls", "calls/s", "errors", "queued p50 p99", "executed p50 p99", "in", "out",
               "in progress"});
  const auto seconds = seconds_since(now, before);
  const auto old_ones = list_of(before, "callers");
  std::size_t shown = 0;
  for (const auto &it : now["callers"]) {
    if (++shown > kMostCallers) continue;
    const auto old = same_in(old_ones, it, {"session"});
    const auto calls = more(it, old, "calls");
    table.add({it["session"].get<std::string>().substr(0, 8), it["transport"], std::to_string(calls),
               rate_text(calls, seconds), std::to_string(more(it, old, "errors")), times_text(it, old, "queueing"),
               times_text(it, old, "execution"), format_size(more(it, old, "in_bytes")),
               format_size(more(it, old, "out_bytes")), std::to_string(number(it, "in_progress"))});
  }
  auto text = table.is_empty() ? "" : table.text();
  if (shown > kMostCallers) text += fmt::format("  and {} callers more\n", shown - kMostCallers);
  return text;
}

std::string describe_calls(const Json &now, const Json &before) {
  Table table({"calls to", "operation", "calls", "errors", "sent again", "held back", "round trip p50 p99"});
  const auto old_ones = list_of(before, "calls");
  for (const auto &it : now["calls"]) {
    const auto old = same_in(old_ones, it, {"peer", "program", "version", "provider", "op"});
    table.add({it["peer"].get<std::string>().substr(0, 60),
               fmt::format("{:#x}/{}", number(it, "program"), number(it, "op")), std::to_string(more(it, old, "calls")),
               std::to_string(errors_of(it) - errors_of(old)), std::to_string(more(it, old, "sent_again")),
               std::to_string(more(it, old, "held_back")), times_text(it, old, "round_trip")});
  }
  return table.is_empty() ? "" : table.text();
}

/// What providers tell of themselves in numbers.
std::string describe_figures(const Json &now) {
  Table table({"of", "figure", "now"});
  for (const auto &it : list_of(now, "providers"))
    for (const auto &figure : list_of(it, "figures")) {
      std::string of = printable(it.value("name", ""));
      for (const auto &[label, value] : figure.value("labels", Json::object()).items())
        of += fmt::format(", {} {}", label, printable(value.is_string() ? value.get<std::string>() : value.dump()));
      table.add({of, printable(figure.value("name", "")), fmt::format("{:.6g}", figure.value("value", 0.0))});
    }
  return table.is_empty() ? "" : table.text();
}

std::string describe_providers(const Json &now) {
  Table table({"provider", "type", "number", "pool", "now"});
  for (const auto &it : list_of(now, "providers"))
    table.add({printable(it.value("name", "")), it.value("type", ""), std::to_string(number(it, "provider")),
               it.value("pool", ""), printable(it.value("state", ""))});
  return (table.is_empty() ? "" : table.text()) + describe_figures(now);
}

/// Empty for a process that nessied does not host.
std::string describe_memory(const Json &now) {
  Table table({"memory of", "now", "at most"});
  for (const auto &it : list_of(now, "memory"))
    table.add({it.value("name", ""), format_size(number(it, "used_bytes")), format_size(number(it, "high_bytes"))});
  return table.is_empty() ? "" : table.text();
}

}  // namespace

std::string describe_statistics(const Json &now, const Json &before) {
  std::string text;
  if (!now.value("is_counted", false)) text += "  it counts nothing: nssi.statistics is off\n";
  if (const auto refused = number(now, "refused") - number(before, "refused"); refused != 0)
    text += fmt::format("  {} requests were none, or for no operation that there is\n", refused);
  return text + describe_providers(now) + describe_memory(now) + describe_operations(now, before) +
         describe_services(now) + describe_callers(now, before) + describe_calls(now, before);
}

}  // namespace nessie::cli
