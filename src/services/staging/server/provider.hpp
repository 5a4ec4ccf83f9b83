// SPDX-License-Identifier: BSD-3-Clause
// The staging service as a provider: MPI, settings, and the files by which `nessie run` knows its servers.
#pragma once

#include <nessie/provider.hpp>
#include <services/staging/server/server.hpp>

namespace staging {

/// What settings say of any server: mode, memory, patience. kInvalidArgument.
Result<ServerOptions> server_options(const nessie::Config &config);

/// The provider type `staging`. It initialises MPI on the thread of main(), for native PnetCDF's sake: one in a
/// process.
nessie::ProviderType provider_type();

}  // namespace staging
