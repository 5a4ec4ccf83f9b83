// SPDX-License-Identifier: BSD-3-Clause
// What both sides say of a service.
#pragma once

#include <Trios_nssi_types.h>

namespace nssi::trios {

/// The segment of each service that is described here, which programs compare. It has no memory.
extern NNTI_remote_addr_t no_memory;

/// The service at `host`.
nssi_service service_of(nssi_rpc_transport transport, const NNTI_peer_t &host);

}  // namespace nssi::trios
