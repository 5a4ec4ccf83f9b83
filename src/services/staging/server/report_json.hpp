// SPDX-License-Identifier: BSD-3-Clause
// A server's report as one JSON object, for server.N.report.
#pragma once

#include <staging.hpp>

#include <string>

namespace staging {

std::string to_json(const ReportResult &report);

}  // namespace staging
