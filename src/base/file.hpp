// SPDX-License-Identifier: BSD-3-Clause
// Whole files.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <string_view>

namespace nessie {

/// kNotFound: it cannot be opened or read; the cause is errno.
Result<std::string> read_file(const std::string &path);

/// The file appears whole or not at all, and replaces what was there: whoever waits for it may read it at once. kIo: it
/// cannot be written; what was there stays. The cause is errno.
Status write_file(const std::string &path, std::string_view text);

}  // namespace nessie
