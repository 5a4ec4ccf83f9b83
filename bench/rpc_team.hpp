// SPDX-License-Identifier: BSD-3-Clause
// The service of the workloads that ask what a call costs (rpc.x), and its clients. All that these workloads know of
// NSSI is here.
#pragma once

#include "service_team.hpp"

#include <rpc_rpc.hpp>

#include <functional>
#include <span>

namespace bench {

using rpc::block;
using Procedure = nssi::OpCode;
namespace Bench = rpc::BENCH::ONE;

/// The measuring side. After a call has failed everything returns at once.
class RpcClient {
 public:
  using Call = nssi::Future<void>;
  using Buffer = nnti::RegisteredBuffer;

  explicit RpcClient(Connection connection)
      : connection_(std::move(connection)), service_(connection_.runtime, connection_.service) {}
  const std::string &url_of_service() const { return connection_.url; }
  const nessie::Status &status() const { return status_; }

  /// A call without arguments, and the wait for its end.
  void call(Procedure procedure);
  /// ECHO_SHORT, ECHO, TAKE. An echo is decoded.
  void call(Procedure procedure, const block &bytes);
  /// TAKE_BULK, GIVE_BULK.
  void call(Procedure procedure, const Buffer &buffer, std::uint64_t size_bytes);
  Call start(Procedure procedure);
  /// How much memory the service's process has, in bytes; 0 after a failure.
  double memory_of_service();
  void wait(Call &call);

  /// Memory that Nessie allocates, and of the process itself: for the service to read and write.
  nessie::Result<Buffer> allocate(std::uint64_t size_bytes);
  nessie::Result<Buffer> lend(std::span<std::byte> memory);

 private:
  nessie::Status status_;
  Connection connection_;
  Bench::Client service_;
};

/// What a client does between connecting and leaving. All clients have met before; `lane` is where it leaves figures.
using RpcLead = std::function<nessie::Status(RpcClient &client, Lane &lane)>;

/// Runs a team once. The reason, if the transport cannot be opened here.
nessie::Result<std::unique_ptr<Board>> run_rpc_team(const Options &options, const ServiceTeam &team,
                                                    const RpcLead &lead);

}  // namespace bench
