// SPDX-License-Identifier: BSD-3-Clause
// Statistics for Prometheus: its text format, version 0.0.4.
#pragma once

#include <nssi/statistics.hpp>

#include <string>

namespace nssi {

inline constexpr const char *kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

std::string to_prometheus(const Statistics &statistics);

}  // namespace nssi
