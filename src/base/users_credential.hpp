// SPDX-License-Identifier: BSD-3-Clause
// The credential of a user, for what is not started as a job: a file that only he can read.
#pragma once

#include "base/credential.hpp"

#include <optional>

namespace nessie {

/// As Credential::of() says. `file`: where it is, if that was said.
Result<Credential> users_credential(const std::optional<std::string> &file);

}  // namespace nessie
