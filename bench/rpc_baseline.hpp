// SPDX-License-Identifier: BSD-3-Clause
// What the programs that measure other RPC libraries share (grpc_baseline.cpp, tirpc_baseline.cpp): how they are asked,
// and their processes. Run by nessie-bench (rivals.cpp), as
//   PROGRAM tcp|unix polls|sleeps CLIENTS WHAT SIZE… [WHAT SIZE…]…
// For each it forks a service and that many clients, and prints "WHAT SIZE FIGURE"; rivals.hpp says what is asked for.
#pragma once

#include "crew.hpp"

#include <nessie/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct RpcSetting {
  bool over_tcp = true;  ///< over loopback; otherwise over a UNIX socket
  bool polls = true;     ///< both sides ask again and again; otherwise they sleep until something comes
  int clients = 1;
  int service() const { return clients; }  ///< as a member of the crew
  /// The member has its core with others: if it polls and finds nothing, it gives the core away.
  bool shares_core(int member) const;
};

/// A client's side, before it measures: until all clients have come.
nessie::Status meet(const RpcSetting &setting, Board &board);
/// The service's side: whether all clients have left, or the crew was stopped. To be asked now and then.
bool is_over(const RpcSetting &setting, Board &board);
inline constexpr int kGlance_ms = 20;              ///< how long a service that sleeps does so before it asks
inline constexpr unsigned kTurnsPerGlance = 1024;  ///< how often one that polls does so

/// What one client measures: into `us`, or the tally. `size`: bytes, or calls in flight.
using MeasureRpc = nessie::Status (*)(const RpcSetting &setting, Board &board, int client, std::uint64_t size);

struct RpcAnswer {
  std::string_view what;
  MeasureRpc measure;
  double (*figure)(Board &board, int clients);
};

struct RpcBaseline {
  const char *program;
  /// Publishes its address as the board's member setting.service(), and serves until is_over().
  nessie::Status (*serve)(const RpcSetting &setting, Board &board);
  std::vector<RpcAnswer> answers;
};

/// The whole of main().
int run_rpc_baseline(const RpcBaseline &baseline, const std::vector<std::string> &arguments);

}  // namespace bench
