// SPDX-License-Identifier: BSD-3-Clause
// What the settings say of a service's runtime, or of its client's.
#pragma once

#include <base/config.hpp>
#include <nssi/nssi.hpp>

namespace nessie::service {

/// With the credential of `credential`. `listen`: the setting that lists transports to listen on, separated by commas
/// (none: all); nullptr: a client, which does not listen. kInvalidArgument: a setting has a value that it cannot have.
Result<nssi::RuntimeOptions> runtime_options(const Config &config, const char *listen);

}  // namespace nessie::service
