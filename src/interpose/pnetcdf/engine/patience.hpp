// SPDX-License-Identifier: BSD-3-Clause
// Waiting for the other ranks without being in the way of what they wait for.
#pragma once

#include <mpi.h>

#include <span>

namespace interpose {

/// Design notes. While rank 0 talks to a staging server, the others wait in a collective call. MPI libraries wait by
/// polling: on a full node the ranks that wait then keep the cores from the very processes they wait for, for whole
/// time slices, and what takes a server a tenth of a millisecond takes the program five. So a rank polls for a moment,
/// as long as is worth while, and then looks again between short sleeps. Where there are more ranks on the node than
/// cores, the moment is short.
void wait_patiently(MPI_Request &request);
void wait_patiently(std::span<MPI_Request> requests);

/// How many ranks the launcher started on this node; 0 if it does not tell.
int ranks_on_node();

}  // namespace interpose
