// SPDX-License-Identifier: BSD-3-Clause
#include "trace.hpp"

#include "commands.hpp"
#include "speech.hpp"

#include <base/file.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

namespace nessie::cli {

namespace {

using Json = nlohmann::json;

/// Each event of such a file has a line of its own.
std::vector<Json> events_of(const std::string &text) {
  std::vector<Json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(",")) line.pop_back();
    auto event = Json::parse(line, nullptr, false);
    if (event.is_object() && event.contains("ph") && event.contains("name")) events.push_back(std::move(event));
  }
  return events;
}

/// What tells the clocks of nodes apart.
struct NodeClock {
  std::string boot;
  double time_of_day_us = 0;
};

std::optional<NodeClock> clock_of(const std::vector<Json> &events) {
  for (const auto &event : events)
    if (event["name"] == "nessie_clock")
      return NodeClock{event["args"].value("boot", ""), event["args"].value("time_of_day_us", 0.0)};
  return std::nullopt;
}

class Merger {
 public:
  /// The monotonic clock of the first file's node counts. Other nodes' are compared with it by the time of day.
  void add(std::vector<Json> events) {
    const auto clock = clock_of(events);
    if (clock && !clock_) clock_ = clock;
    const double shift_us = clock && clock->boot != clock_->boot ? clock->time_of_day_us - clock_->time_of_day_us : 0;
    ++processes_;
    for (auto &event : events) {
      event["pid"] = processes_;
      if (event.contains("ts")) event["ts"] = event["ts"].get<double>() + shift_us;
      if (event.contains("ts")) first_us_ = std::min(first_us_, event["ts"].get<double>());
      if (event.value("cat", "") == "execution") names_[event["args"].value("parent", "")] = event["name"];
      all_.push_back(std::move(event));
    }
  }
  bool is_empty() const { return first_us_ == std::numeric_limits<double>::max(); }
  std::string text() {
    for (auto &event : all_) {
      if (event.contains("ts")) event["ts"] = event["ts"].get<double>() - first_us_;
      if (event.value("cat", "") != "call") continue;
      if (const auto name = names_.find(event["args"].value("span", "")); name != names_.end())
        event["name"] = "call " + name->second;
    }
    return Json{{"traceEvents", std::move(all_)}, {"displayTimeUnit", "ns"}}.dump(-1, ' ', false,
                                                                                  Json::error_handler_t::replace);
  }

 private:
  std::optional<NodeClock> clock_;
  int processes_ = 0;
  double first_us_ = std::numeric_limits<double>::max();
  std::map<std::string, std::string> names_;  ///< of operations, by the span of the call
  std::vector<Json> all_;
};

Result<std::vector<std::string>> read_folder(const std::string &folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code problem;
  for (const auto &entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.path().string().ends_with(".trace.json")) paths.push_back(entry.path());
  if (problem)
    return Error{Code::kIo, fmt::format("the folder {} cannot be read: {}", folder, problem.message()),
                 Scope::kOperation, problem.value()};
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const auto &path : paths) {
    auto text = read_file(path);
    texts.push_back(text.ok() ? *std::move(text) : std::string());
  }
  return texts;
}

int fail(const std::string &why) { return say_failure("trace", why); }

}  // namespace

Result<std::string> merge_traces(const std::vector<std::string> &texts) {
  Merger merger;
  try {
    for (const auto &text : texts) merger.add(events_of(text));
    if (!merger.is_empty()) return merger.text();
  } catch (const Json::exception &e) {
    return Error{Code::kBadMessage, fmt::format("a file is not what NSSI writes: {}", e.what())};
  }
  return Error{Code::kNotFound,
               "there is no event; let the processes run with NESSIE_NSSI_TRACE set to the folder, and make calls"};
}

int trace(const TraceOptions &options) {
  const auto texts = read_folder(options.folder);
  if (!texts) return fail(texts.error().message);
  const auto merged = merge_traces(*texts);
  if (!merged) return fail(fmt::format("{}: {}", options.folder, merged.error().message));
  if (options.out_file.empty()) {
    std::cout << *merged << std::flush;
    return std::cout ? 0 : fail("standard output cannot be written");
  }
  std::ofstream file(options.out_file, std::ios::binary);
  file << *merged << std::flush;
  if (!file) return fail(fmt::format("{} cannot be written", options.out_file));
  fmt::print(stderr, "{}: {} processes; open it in https://ui.perfetto.dev or chrome://tracing\n", options.out_file,
             texts->size());
  return 0;
}

}  // namespace nessie::cli
