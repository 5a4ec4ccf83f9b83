// SPDX-License-Identifier: BSD-3-Clause
// Puts the trace files of several processes together (docs/observing.md).
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// One trace in Chrome's format, of the texts of several files of src/nssi/tracer.hpp: processes numbered, times from
/// the first event on, calls named as the operations that they called. Of a file that was torn, the events that are
/// whole. kNotFound: there is no event.
Result<std::string> merge_traces(const std::vector<std::string> &texts);

}  // namespace nessie::cli
