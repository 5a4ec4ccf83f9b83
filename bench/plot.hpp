// SPDX-License-Identifier: BSD-3-Clause
// What was measured, as a picture: nessie-bench-plot (plot.py) draws it.
#pragma once

#include "report.hpp"

#include <nessie/result.hpp>

#include <string>

namespace bench {

/// Writes a PNG, SVG or PDF file, as the suffix says. kIo, with what the program said: matplotlib is missing, or the
/// file cannot be written.
nessie::Status plot(const Report &report, const std::string &file);

}  // namespace bench
