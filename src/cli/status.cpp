// SPDX-License-Identifier: BSD-3-Clause
#include "commands.hpp"

#include "inspector.hpp"
#include "speech.hpp"
#include "summary.hpp"

#include <base/config.hpp>
#include <base/printable.hpp>
#include <services/staging/client/client.hpp>
#include <services/staging/report_json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace nessie::cli {

namespace {

using Json = nlohmann::json;

std::string describe_staging(int index, const std::string &url, const staging::ReportResult &report) {
  auto text = fmt::format("staging server {} at {}\n", index, url);
  text += fmt::format("  {}, {}; {} pulled in {}, {} pushed in {}\n", counted(report.clients, "client"),
                      counted(report.files, "file"), format_size(report.bytes_pulled), counted(report.writes, "write"),
                      format_size(report.bytes_pushed), counted(report.reads, "read"));
  text += fmt::format("  {} in the files, {} on the way; {} of memory at most\n", format_size(report.bytes_drained),
                      format_size(report.bytes_pending), format_size(report.memory_high_bytes));
  if (report.restarts > 0)
    text += fmt::format("  started again {}, the last time {} s ago\n", counted(report.restarts, "time"),
                        std::max<std::int64_t>(0, std::time(nullptr) - static_cast<std::int64_t>(report.restarted_at)));
  for (const auto &file : report.stuck)
    text += fmt::format("  trying again: {}: {} ({:.0f} s left)\n", printable(file.path), printable(file.message),
                        file.left_s);
  if (report.damaged_pages > 0)
    text += fmt::format("  {} damaged in memory: see the log; have this node's memory checked\n",
                        counted(report.damaged_pages, "page"));
  for (const auto &note : report.native) text += fmt::format("  native: {}\n", note);
  if (report.left_native > 0)
    text += fmt::format("  left to native PnetCDF: {}; {}\n", counted(report.left_native, "file"),
                        printable(report.why_left));
  for (const auto &failure : report.failures)
    text += fmt::format("  failed: {}: {}\n", printable(failure.path), printable(failure.message));
  return text;
}

int fail(const Error &error) { return say_failure("status", error.message); }

/// One process that is asked.
struct Asked {
  std::string url;
  Json before;  ///< what it had counted the last time
};

class Status {
 public:
  Status(const StatusOptions &options, std::unique_ptr<Inspector> inspector, std::unique_ptr<staging::Client> client)
      : options_(options), inspector_(std::move(inspector)), client_(std::move(client)) {
    for (int index = 0; client_ && index < client_->servers(); ++index)
      asked_.push_back({client_->server_url(index), {}});
  }
  /// Has those asked that the user said.
  nessie::Status find() {
    for (const auto &what : options_.places) {
      const auto urls = inspector_->find(what);
      if (!urls) return urls.error();
      for (const auto &url : *urls) asked_.push_back({url, {}});
    }
    return {};
  }
  /// Each of them once.
  int print() {
    int exit_code = 0;
    if (options_.watch_s && !options_.json && ::isatty(STDOUT_FILENO) != 0) fmt::print("\033[H\033[2J");
    for (int index = 0; index < static_cast<int>(asked_.size()); ++index)
      if (const auto printed = print(index); !printed.ok()) exit_code = fail(index, printed.error());
    std::fflush(stdout);
    return exit_code;
  }

 private:
  /// Of several, which one it is that cannot be asked.
  int fail(int index, const Error &error) const {
    const auto &url = asked_[static_cast<std::size_t>(index)].url;
    return say_failure("status", asked_.size() > 1 ? fmt::format("{}: {}", url, error.message) : error.message);
  }
  nessie::Status print(int index) {
    auto &[url, before] = asked_[static_cast<std::size_t>(index)];
    auto head = Json{{"index", index}, {"url", url}};
    auto text = fmt::format("process at {}\n", url);
    if (client_) {
      const auto report = client_->report(index);
      if (!report) return report.error();
      head.update(staging::to_json(*report));
      head.update({{"restarts", report->restarts},
                   {"restarted_at", report->restarts > 0 ? Json(report->restarted_at) : Json()}});
      text = describe_staging(index, url, *report);
    }
    auto counted = inspector_->ask(url);
    if (!counted) return counted.error();
    head["nssi"] = *counted;
    if (options_.json)
      fmt::print("{}\n", head.dump());
    else
      fmt::print("{}{}", text, describe_statistics(*counted, before));
    before = *std::move(counted);
    return {};
  }

  const StatusOptions &options_;
  std::unique_ptr<Inspector> inspector_;
  std::unique_ptr<staging::Client> client_;
  std::vector<Asked> asked_;
};

}  // namespace

int status(const StatusOptions &options) {
  const auto config = Config::load();
  if (!config) return fail(config.error());
  std::unique_ptr<staging::Client> client;
  if (options.places.empty()) {
    if (!config->get("servers"))
      return say_failure("status",
                         "NESSIE_SERVERS names no servers; run this under `nessie run`, or say where a process is");
    auto connected = staging::Client::connect(*config, "");
    if (!connected) return fail(connected.error());
    client = *std::move(connected);
  }
  auto inspector = Inspector::open(*config);
  if (!inspector) return fail(inspector.error());
  Status status(options, *std::move(inspector), std::move(client));
  if (const auto found = status.find(); !found.ok()) return fail(found.error());
  if (!options.watch_s) return status.print();
  for (;; std::this_thread::sleep_for(std::chrono::duration<double>(*options.watch_s)))
    if (const int exit_code = status.print(); exit_code != 0) return exit_code;
}

}  // namespace nessie::cli
