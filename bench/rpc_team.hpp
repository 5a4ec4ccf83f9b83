// SPDX-License-Identifier: BSD-3-Clause
// One service and its clients: the two sides of the workloads of NSSI. Each is a process (inproc: a thread), the
// service on a core of its own where there are two. All that these workloads know of NSSI is here.
#pragma once

#include "crew.hpp"
#include "options.hpp"

#include <rpc_rpc.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>

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

using rpc::block;
using Procedure = nssi::OpCode;
namespace Bench = rpc::BENCH::ONE;

struct RpcTeam {
  int clients = 1;
  RpcWaiting waiting = kRpcPolling;
  std::uint64_t memory_bytes = 4096;  ///< of the service's own buffer
};

/// The measuring side. After a call has failed everything returns at once.
class RpcClient {
 public:
  using Call = nssi::Future<void>;
  using Buffer = nnti::RegisteredBuffer;

  nessie::Status open(const Options &options, const RpcWaiting &waiting);
  nessie::Status connect(const std::string &url);
  const nessie::Status &status() const { return status_; }

  /// A call without arguments, and the wait for its end.
  void call(Procedure procedure);
  /// ECHO_SHORT, ECHO, TAKE. An echo is decoded.
  void call(Procedure procedure, const block &bytes);
  /// TAKE_BULK, GIVE_BULK.
  void call(Procedure procedure, const Buffer &buffer, std::uint64_t size_bytes);
  Call start(Procedure procedure);
  void wait(Call &call);

  /// Memory that Nessie allocates, and of the process itself: for the service to read and write.
  nessie::Result<Buffer> allocate(std::uint64_t size_bytes);
  nessie::Result<Buffer> lend(std::span<std::byte> memory);

 private:
  nessie::Status status_;
  std::unique_ptr<nssi::Runtime> runtime_;
  std::optional<Bench::Client> service_;
};

/// What a client does between connecting and leaving. All clients have met before; `lane` is where it leaves figures.
using RpcLead = std::function<nessie::Status(RpcClient &client, Lane &lane)>;

/// Lanes 0 to clients-1 of the board are the clients'.
std::unique_ptr<Board> board_for(const RpcTeam &team);
/// Runs a team once. The reason, if the transport cannot be opened here.
nessie::Status run_rpc_team(const Options &options, const RpcTeam &team, Board &board, const RpcLead &lead);

}  // namespace bench
