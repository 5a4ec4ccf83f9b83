// SPDX-License-Identifier: BSD-3-Clause
// The staging service as a provider: MPI, settings, and the files by which `nessie run` knows its servers.
#pragma once

#include <nessie/provider.hpp>

namespace staging {

/// The provider type `staging`. It initialises MPI on the thread of main(), for native PnetCDF's sake: one in a
/// process.
nessie::ProviderType provider_type();

}  // namespace staging
