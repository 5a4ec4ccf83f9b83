// SPDX-License-Identifier: BSD-3-Clause
// libnessie_transport_mpi.so: the transport for programs that were not linked to it.
#include "nnti/transport/module.hpp"

#include <nnti/mpi.hpp>

extern "C" [[gnu::visibility("default")]] const nnti::TransportModule nessie_transport_module{
    NESSIE_VERSION, &nnti::mpi::transport_kind()};
