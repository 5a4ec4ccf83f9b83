// SPDX-License-Identifier: BSD-3-Clause
// One service and its clients: the two sides of the workloads that call. Each is a process (inproc: a thread), the
// service on a core of its own where there are two. What the service offers, and what its clients do, is the
// workload's.
#pragma once

#include "crew.hpp"
#include "options.hpp"

#include <nssi/nssi.hpp>

#include <functional>
#include <memory>

namespace bench {

/// How the two sides wait for each other.
struct RpcWaiting {
  const char *mode;     ///< as in the report
  const char *spin_us;  ///< nnti.spin_us: how long a wait polls before it sleeps; empty: the default
  bool paced;           ///< the service sleeps when a call comes
};
inline constexpr RpcWaiting kRpcPolling{"polling", "1000000", false};
inline constexpr RpcWaiting kRpcBlocking{"blocking", "0", true};
inline constexpr RpcWaiting kRpcDefault{"default", "", false};

struct ServiceTeam {
  int clients = 1;
  RpcWaiting waiting = kRpcPolling;
  bool bound = true;                  ///< to a core each; false: where the kernel has them
  std::uint64_t memory_bytes = 4096;  ///< of the service's own buffer, if it has one
};

/// Of either side.
nessie::Result<std::unique_ptr<nssi::Runtime>> open_runtime(const Options &options, const RpcWaiting &waiting,
                                                            bool listen);

/// The service's side: opens a runtime, has the service added to it, and serves until all clients have left.
using Offer = std::function<nessie::Status(nssi::Runtime &runtime)>;
nessie::Status serve(const Options &options, const ServiceTeam &team, Board &board, const Offer &offer);

/// What the service's process does: makes a service, and calls serve().
using Host = std::function<nessie::Status(Board &board)>;
/// What a client has of the service.
struct Connection {
  nssi::Runtime &runtime;
  nssi::PeerId service;
  std::string url;  ///< the service's
};
/// What a client does between connecting and leaving. All clients have met before; `lane` is where it leaves figures.
using Visit = std::function<nessie::Status(const Connection &connection, Lane &lane)>;

/// Runs a team once. Its members 0 to clients-1 are the clients. The reason, if the transport cannot be opened here.
nessie::Result<std::unique_ptr<Board>> run_service_team(const Options &options, const ServiceTeam &team,
                                                        const Host &host, const Visit &visit);

}  // namespace bench
