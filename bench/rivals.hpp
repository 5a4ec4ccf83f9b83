// SPDX-License-Identifier: BSD-3-Clause
// Other libraries, each measured by a program of ours that asks of it what the workload asks of us. Those that move
// messages: Open MPI and MPICH (mpi_baseline.cpp), UCX (ucx_baseline.cpp). Those that carry calls: gRPC
// (grpc_baseline.cpp) and libtirpc (tirpc_baseline.cpp). Each at its best: processes bound to cores as ours are,
// warmed up, with the same batches and windows; those that move messages poll.
#pragma once

#include "report.hpp"

#include <nessie/result.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

enum class Library { kOpenMpi, kMpich, kUcx, kGrpc, kTirpc };
enum class Network { kSharedMemory, kTcp, kUnixSocket };

/// What over which ours goes: TCP for tcp, ofi and ucx, shared memory for the others.
Network network_of(const std::string &transport);
const char *name_of(Library library);
const char *name_of(Network network);
/// The setting that makes UCX use it, and nothing else.
const char *ucx_transports(Network network);

/// What a rival is asked for: something to measure, for several sizes. Of those that move messages:
///   round-trip        µs of a message and its echo
///   transfer          µs of a message and an empty answer
///   both-ways         µs of a message in each direction at once (UCX: of a put)
///   allreduce         MPIs: µs of a sum of doubles, of all processes, of that many bytes
///   redistribution    Open MPI: µs in which a cube of doubles of that many bytes goes from blocks of eight processes
///   to
///                     slabs of four of them, by MPI_Alltoallw
///   put, get          µs of a one-sided transfer of memory that the library allocated; a put is complete when the
///                     other side can see it
///   rate              messages a second, in windows of 64 with an answer
///   transfers-per-s, puts-per-s, gets-per-s   as above, counted
///
/// Of those that carry calls:
///   round-trip        µs of an empty call (size 0), or of one whose argument comes back as its result
///   paced             as above, each call after a pause in which the service falls asleep
///   take              µs of a call whose argument has that size, and whose result is empty
///   write-encode      libtirpc: µs of a call whose argument is an array of structs, of that many bytes
///   read-encode       likewise, as its result
///   calls-per-s       empty calls a second; `size` is how many of them are in flight from each client
///   batched-per-s     libtirpc: as above, but only the last call of a batch of `size` has an answer
/// Where several processes measure: the median of their times; their counts together.
struct Question {
  std::string what;
  std::vector<std::uint64_t> sizes;
};

/// A library over a network.
struct Rival {
  Library library;
  Network network;
  /// As in the report: of those that carry calls, over one kind of socket or the other, "polling-unix".
  std::string mode(const std::string &of_ours) const;
};

/// UCX is not asked for transfers: its active messages of that size would not show what it can. gRPC has no batches.
bool can_answer(Library library, const std::string &what);

/// Who measures with whom.
struct Cast {
  int leaders = 1;
  bool one_target = false;  ///< all with the same process, instead of each with one of its own; calls always are
  bool polls = true;        ///< of those that carry calls: otherwise both sides sleep until something comes
  bool split = false;       ///< of MPIs: in a job with a program that sleeps, from which CommSplitter parts them
};

/// Microseconds, or numbers per second, by what was asked.
using Answers = std::map<std::string, FiguresBySize>;
nessie::Result<Answers> ask(const Rival &rival, const Cast &cast, const std::vector<Question> &questions);

/// Those libraries that were built, and whose launcher is here, over each of the networks. Says on stderr which are not
/// here, and what to install.
std::vector<Rival> those_here(const std::vector<Library> &libraries, const std::vector<Network> &networks);
/// Whether CommSplitter was built for it.
bool can_be_split(Library library);
/// Those that move messages.
std::vector<Rival> rivals_here(Network network);
/// Those that carry calls, over TCP and over UNIX sockets.
std::vector<Rival> rpc_rivals_here(const std::vector<Library> &libraries = {Library::kGrpc, Library::kTirpc});

}  // namespace bench
