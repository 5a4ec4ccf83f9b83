// SPDX-License-Identifier: BSD-3-Clause
#include "status.hpp"

#include "summary.hpp"

#include <base/config.hpp>
#include <services/staging/client/client.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace nessie::cli {

namespace {

void print_text(int index, const std::string &url, const staging::ReportResult &report) {
  fmt::print("staging server {} at {}\n", index, url);
  fmt::print("  {} clients, {} files; {} pulled in {} writes, {} pushed in {} reads\n", report.clients, report.files,
             format_size(report.bytes_pulled), report.writes, format_size(report.bytes_pushed), report.reads);
  fmt::print("  {} in the files, {} on the way; {} of memory at most\n", format_size(report.bytes_drained),
             format_size(report.bytes_pending), format_size(report.memory_high_bytes));
  for (const auto &note : report.native) fmt::print("  native: {}\n", note);
  for (const auto &failure : report.failures) fmt::print("  failed: {}: {}\n", failure.path, failure.message);
}

int fail(const Error &error) {
  fmt::print(stderr, "nessie status: {}\n", error.message);
  return 1;
}

}  // namespace

int status(bool json) {
  const auto config = Config::load();
  if (!config) return fail(config.error());
  if (!config->get("servers")) {
    fmt::print(stderr, "nessie status: NESSIE_SERVERS names no servers; run this under `nessie run`\n");
    return 1;
  }
  auto client = staging::Client::connect(*config, "nessie status");
  if (!client) return fail(client.error());
  int exit_code = 0;
  for (int index = 0; index < (*client)->servers(); ++index) {
    const auto report = (*client)->report(index);
    if (!report)
      exit_code = fail(report.error());
    else if (json)
      fmt::print("{}\n", server_json(index, (*client)->server_url(index), *report).dump());
    else
      print_text(index, (*client)->server_url(index), *report);
  }
  return exit_code;
}

}  // namespace nessie::cli
