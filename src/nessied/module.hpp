// SPDX-License-Identifier: BSD-3-Clause
// Provider types in shared objects (nessie/module.h).
#pragma once

#include <nessie/provider.hpp>

#include <string>

namespace nessied {

/// Loads the shared object, which stays until the process ends. kNotFound: it cannot be loaded, and why. kUnsupported:
/// it has no entry point, or is of another version of Nessie. kInvalidArgument: its entry says nothing usable.
nessie::Result<nessie::ProviderType> load_module(const std::string &path);

}  // namespace nessied
