// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/report_json.hpp>

#include <base/printable.hpp>

#include <algorithm>
#include <cstddef>

namespace staging {

using nlohmann::json;

json to_json(std::vector<std::string> texts) {
  for (auto &text : texts) text = nessie::to_utf8(text);
  return texts;
}

json to_json(const std::vector<FileReport> &files) {
  auto array = json::array();
  for (const auto &file : files) {
    array.push_back({{"path", nessie::to_utf8(file.path)},
                     {"nc_error", file.nc_error},
                     {"message", nessie::to_utf8(file.message)},
                     {"bytes_acknowledged", file.bytes_acknowledged},
                     {"bytes_in_file", file.bytes_in_file},
                     {"missing", to_json(file.missing)}});
    if (!nessie::is_utf8(file.path)) array.back()["path_bytes"] = nessie::hex_bytes(file.path);
  }
  return array;
}

json to_json(const ReportResult &it) {
  return {{"clients", it.clients},
          {"bytes_staged", it.bytes_pulled},
          {"bytes_read", it.bytes_pushed},
          {"bytes_drained", it.bytes_drained},
          {"bytes_pending", it.bytes_pending},
          {"writes", it.writes},
          {"reads", it.reads},
          {"memory_high_bytes", it.memory_high_bytes},
          {"damaged_pages", it.damaged_pages},
          {"native", to_json(it.native)},
          {"left_native", it.left_native},
          {"why_left", nessie::to_utf8(it.why_left)},
          {"files", to_json(it.drained)},
          {"failures", to_json(it.failures)}};
}

namespace {

FileReport report_of(const json &it) {
  FileReport file;
  file.path = it.value("path", "");
  file.nc_error = it.value("nc_error", 0);
  file.message = it.value("message", "");
  file.bytes_acknowledged = it.value("bytes_acknowledged", std::uint64_t{0});
  file.bytes_in_file = it.value("bytes_in_file", std::uint64_t{0});
  for (const auto &range : it.value("missing", json::array())) file.missing.push_back(range.get<std::string>());
  return file;
}

}  // namespace

std::optional<std::vector<FileReport>> reports_in(const json &report) {
  if (!report.is_object() || !report.contains("files") || !report.contains("failures")) return std::nullopt;
  std::vector<FileReport> reports;
  try {
    for (const auto &failure : report["failures"]) reports.push_back(report_of(failure));
    const auto failures = reports.size();
    for (const auto &file : report["files"]) {
      auto done = report_of(file);
      const auto end = reports.begin() + static_cast<std::ptrdiff_t>(failures);
      if (std::ranges::count(reports.begin(), end, done.path, &FileReport::path) == 0)
        reports.push_back(std::move(done));
    }
  } catch (const json::exception &) { return std::nullopt; }
  return reports;
}

}  // namespace staging
