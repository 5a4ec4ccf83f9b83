// SPDX-License-Identifier: BSD-3-Clause
// The transport "mpi": NNTI over an MPI that the processes run under anyway. Whoever names it among his transports has
// it loaded. For who says himself which processes take part, and in which call they agree upon it, it is in a library
// of its own, too (nessie_nnti_mpi), which main() hands in:
//
//   options.extra_transports = {&nnti::mpi::transport_kind()};
//   options.transports = {"mpi"};
//
// src/nnti/transports/mpi/README.md says what goes over MPI, and what MPI cannot do.
#pragma once

#include <nnti/nnti.hpp>

#include <mpi.h>

#include <string>

namespace nnti::mpi {

/// For EndpointOptions::extra_transports and Endpoint::survey().
const TransportKind &transport_kind();

/// Makes a *world* of the processes of `group` (an intracommunicator): endpoints of one world reach each other.
/// Collective over `group`, in the same order as other collective calls on it; sends nothing that a receive of the
/// application on `group`, or on any communicator of its own, could match. Returns the world's id; a process that is in
/// several names the one that an endpoint shall belong to by the setting nnti.mpi.world; unnamed, it is the first.
///
/// Who never calls join() gets a world of MPI_COMM_WORLD with the first endpoint over mpi: that Endpoint::open() is
/// then collective over MPI_COMM_WORLD, later ones are not. Where only some processes open endpoints, they join() a
/// communicator of their own first. Processes of two jobs become a world through MPI_Comm_accept/MPI_Comm_connect,
/// MPI_Intercomm_merge, join().
///
/// Initialises MPI (MPI_THREAD_MULTIPLE) if nobody has, and then finalises it when the process exits.
/// kTimedOut: not all of `group` have called; a further call goes on with the same attempt. kUnsupported: MPI has been
/// finalised, or its thread level forbids calls from this thread.
Result<std::string> join(MPI_Comm group, Deadline deadline);

}  // namespace nnti::mpi
