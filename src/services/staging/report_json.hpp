// SPDX-License-Identifier: BSD-3-Clause
// What servers report, as JSON: for server.N.report, `nessie status --json` and `nessie run --json`.
#pragma once

#include <staging.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace staging {

/// JSON is UTF-8: bytes that are not are replaced. A path that is not has its bytes beside it, as `path_bytes`.
nlohmann::json to_json(const ReportResult &report);
nlohmann::json to_json(const std::vector<FileReport> &files);
nlohmann::json to_json(std::vector<std::string> texts);

/// The other way, of a server's report, or a run's summary: all files that it has; those that have failed have a
/// message, or a code. Nothing: it is none.
std::optional<std::vector<FileReport>> reports_in(const nlohmann::json &report);

}  // namespace staging
