// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/observe/prometheus.hpp>

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>

namespace nssi {

namespace {

/// In seconds; a histogram's own buckets are finer.
constexpr std::array kBounds{1e-6, 2.5e-6, 5e-6,   1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3,
                             5e-3, 1e-2,   2.5e-2, 5e-2, 0.1,    0.25, 0.5,  1.0,    2.5,  5.0,  10.0};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

std::string labels_of(const Interface &interface, std::uint32_t provider) {
  return fmt::format("program=\"{:#x}\",version=\"{}\",provider=\"{}\"", interface.program, interface.version,
                     provider);
}
std::string labels_of(const OperationStatistics &it) {
  return fmt::format("{},op=\"{}\",name=\"{}\"", labels_of(it.interface, it.provider), it.op, escaped(it.name));
}
std::string labels_of(const ServiceStatistics &it) { return labels_of(it.interface, it.provider); }
std::string labels_of(const CallerStatistics &it) {
  return fmt::format("session=\"{}\",transport=\"{}\"", it.session, escaped(it.transport));
}
std::string labels_of(const CallStatistics &it) {
  return fmt::format("peer=\"{}\",{},op=\"{}\"", escaped(it.peer), labels_of(it.interface, it.provider), it.op);
}

class Page {
 public:
  void describe(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP nessie_nssi_{0} {2}\n# TYPE nessie_nssi_{0} {1}\n", name, type, help);
  }
  template <class Value> void sample(std::string_view name, std::string_view labels, Value value) {
    const bool has_labels = !labels.empty();
    text_ +=
        fmt::format("nessie_nssi_{}{}{}{} {}\n", name, has_labels ? "{" : "", labels, has_labels ? "}" : "", value);
  }
  template <class T, class Get>
  void each(std::string_view name, std::string_view type, std::string_view help, const std::vector<T> &all, Get get) {
    describe(name, type, help);
    for (const auto &it : all) sample(name, labels_of(it), get(it));
  }
  template <class T> void errors(std::string_view name, std::string_view help, const std::vector<T> &all) {
    describe(name, "counter", help);
    for (const auto &it : all)
      for (const auto &[code, count] : it.errors)
        sample(name, fmt::format("{},code=\"{}\"", labels_of(it), nessie_code_name(static_cast<int>(code))), count);
  }
  template <class T>
  void times(std::string_view name, std::string_view help, const std::vector<T> &all, TimeHistogram T::*times) {
    describe(name, "histogram", help);
    for (const auto &it : all) histogram(name, labels_of(it), it.*times);
  }
  std::string take() { return std::move(text_); }

 private:
  void histogram(std::string_view name, const std::string &labels, const TimeHistogram &times) {
    const auto bucket_name = fmt::format("{}_bucket", name);
    std::uint64_t seen = 0;
    auto bucket = times.buckets.begin();
    for (const double bound : kBounds) {
      for (; bucket != times.buckets.end() && static_cast<double>(bucket->up_to_ns) <= bound * 1e9; ++bucket)
        seen += bucket->count;
      sample(bucket_name, fmt::format("{},le=\"{}\"", labels, bound), seen);
    }
    sample(bucket_name, labels + ",le=\"+Inf\"", times.count);
    sample(fmt::format("{}_sum", name), labels, static_cast<double>(times.sum_ns) / 1e9);
    sample(fmt::format("{}_count", name), labels, times.count);
  }
  std::string text_;
};

void write_operations(Page &page, const std::vector<OperationStatistics> &all) {
  using It = OperationStatistics;
  page.each("calls_total", "counter", "Requests whose handlers have ended.", all,
            [](const It &it) { return it.calls; });
  page.errors("errors_total", "Requests that were answered with an error, by its code.", all);
  page.each("dropped_total", "counter", "Requests that were given up before they began.", all,
            [](const It &it) { return it.dropped; });
  page.each("turned_away_total", "counter", "Requests that were turned away for want of room.", all,
            [](const It &it) { return it.turned_away; });
  page.each("sent_again_total", "counter", "Requests that came once more after their connection was lost.", all,
            [](const It &it) { return it.sent_again; });
  page.each("args_bytes_total", "counter", "Bytes of arguments.", all, [](const It &it) { return it.args_bytes; });
  page.each("result_bytes_total", "counter", "Bytes of results.", all, [](const It &it) { return it.result_bytes; });
  page.each("pulled_bytes_total", "counter", "Bytes pulled out of callers' memory.", all,
            [](const It &it) { return it.pulled_bytes; });
  page.each("pushed_bytes_total", "counter", "Bytes pushed into callers' memory.", all,
            [](const It &it) { return it.pushed_bytes; });
  page.each("viewed_bytes_total", "counter", "Bytes of callers' memory read where they lie.", all,
            [](const It &it) { return it.viewed_bytes; });
  page.times("queueing_seconds", "From a request's arrival until its handler begins.", all, &It::queueing);
  page.times("execution_seconds", "Time that handlers took, with their transfers and waits.", all, &It::execution);
  page.times("transfer_seconds", "Time of each transfer to or from a caller's memory.", all, &It::transfer);
}

void write_services(Page &page, const std::vector<ServiceStatistics> &all) {
  using It = ServiceStatistics;
  page.each("requests_in_progress", "gauge", "Requests that were accepted and are not over.", all,
            [](const It &it) { return it.requests; });
  page.each("requests_limit", "gauge", "How many may be in progress; 0: no limit.", all,
            [](const It &it) { return it.limits.requests; });
  page.each("bytes_in_progress", "gauge", "Bytes of their arguments, and of results to be fetched.", all,
            [](const It &it) { return it.bytes; });
  page.each("bytes_limit", "gauge", "How many may be in progress; 0: no limit.", all,
            [](const It &it) { return it.limits.bytes; });
  page.each("callers_waiting", "gauge", "Callers whose requests were turned away and wait for room.", all,
            [](const It &it) { return it.callers_waiting; });
}

void write_callers(Page &page, const std::vector<CallerStatistics> &all) {
  using It = CallerStatistics;
  page.each("caller_calls_total", "counter", "Requests of one caller that are over.", all,
            [](const It &it) { return it.calls; });
  page.each("caller_errors_total", "counter", "Of these, those answered with an error.", all,
            [](const It &it) { return it.errors; });
  page.each("caller_in_bytes_total", "counter", "Bytes that came from a caller.", all,
            [](const It &it) { return it.in_bytes; });
  page.each("caller_out_bytes_total", "counter", "Bytes that went to a caller.", all,
            [](const It &it) { return it.out_bytes; });
  page.each("caller_requests_in_progress", "gauge", "Requests of one caller in progress.", all,
            [](const It &it) { return it.in_progress; });
}

void write_calls(Page &page, const std::vector<CallStatistics> &all) {
  using It = CallStatistics;
  page.each("made_calls_total", "counter", "Calls made by this process that are over.", all,
            [](const It &it) { return it.calls; });
  page.errors("made_errors_total", "Of these, those that ended with an error, by its code.", all);
  page.each("made_sent_again_total", "counter", "Calls sent again because their connection was lost.", all,
            [](const It &it) { return it.sent_again; });
  page.each("made_held_back_total", "counter", "Calls held back because the service had no room.", all,
            [](const It &it) { return it.held_back; });
  page.times("round_trip_seconds", "From sending a call to its result.", all, &It::round_trip);
}

void write_memory(Page &page, const std::vector<MemoryStatistics> &all) {
  const auto each = [&](const char *name, const char *help, std::uint64_t MemoryStatistics::*bytes) {
    page.describe(name, "gauge", help);
    for (const auto &it : all) page.sample(name, fmt::format("account=\"{}\"", it.name), it.*bytes);
  };
  each("memory_bytes", "Memory for data that a pool of the process has taken.", &MemoryStatistics::used_bytes);
  each("memory_high_bytes", "The most that it has had.", &MemoryStatistics::high_bytes);
}

/// Each type of provider has names of its own: nessie_TYPE_NAME.
std::string providers_page(const std::vector<ProviderStatistics> &all) {
  std::map<std::string, std::string> samples;  // of one name, which have to stand together
  for (const auto &it : all)
    for (const auto &figure : it.figures) {
      auto labels = fmt::format("name=\"{}\"", escaped(it.name));
      for (const auto &[label, value] : figure.labels) labels += fmt::format(",{}=\"{}\"", label, escaped(value));
      const auto name = fmt::format("nessie_{}_{}", it.type, figure.name);
      samples[name] += fmt::format("{}{{{}}} {}\n", name, labels, figure.value);
    }
  std::string text;
  for (const auto &[name, lines] : samples)
    text += fmt::format("# TYPE {} {}\n{}", name, name.ends_with("_total") ? "counter" : "gauge", lines);
  return text;
}

}  // namespace

std::string to_prometheus(const Statistics &statistics) {
  Page page;
  page.describe("uptime_seconds", "gauge", "How long the runtime has existed.");
  page.sample("uptime_seconds", "", static_cast<double>(statistics.uptime_ns) / 1e9);
  page.describe("refused_total", "counter", "Requests without an operation, or that could not be decoded.");
  page.sample("refused_total", "", statistics.refused);
  write_operations(page, statistics.operations);
  write_services(page, statistics.services);
  write_callers(page, statistics.callers);
  write_calls(page, statistics.calls);
  write_memory(page, statistics.memory);
  return page.take() + providers_page(statistics.providers);
}

}  // namespace nssi
