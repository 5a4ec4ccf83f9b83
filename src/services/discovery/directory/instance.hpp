// SPDX-License-Identifier: BSD-3-Clause
// What may be in a directory. Checked by clients before they announce, by the server, and by clients who look it up.
#pragma once

#include <directory.hpp>
#include <nessie/result.hpp>

namespace directory {

/// kInvalidArgument, with what to correct: the name is none (service::is_name), the URL is none, an attribute's name is
/// none or there twice, its value has other than printable ASCII characters; one of them is longer than directory.x
/// says, or there are more attributes.
nessie::Status check(const instance &what);

/// kInvalidArgument: no name, and no beginning of one, is like that.
nessie::Status check(const query &query);

bool matches(const query &query, std::string_view name);

}  // namespace directory
