// SPDX-License-Identifier: BSD-3-Clause
// `nessie info --settings`.
#pragma once

namespace nessie::cli {

/// Prints every setting: its value as it is now and where that comes from, or else its default, and what it means.
int list_settings(bool as_json);

}  // namespace nessie::cli
