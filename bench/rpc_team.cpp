// SPDX-License-Identifier: BSD-3-Clause
#include "rpc_team.hpp"

#include "machine.hpp"
#include "page_aligned.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

// --- the service -----------------------------------------------------------------------------------------------------

class Server final : public Bench::Server {
 public:
  explicit Server(std::size_t memory_bytes) : memory_(memory_bytes, std::byte{1}) {}
  nssi::HandlerKind kind_of(Procedure procedure) const override {
    const bool is_short = procedure == Bench::NOTHING_SHORT || procedure == Bench::ECHO_SHORT;
    return is_short ? nssi::HandlerKind::kShort : nssi::HandlerKind::kFiber;
  }
  Status NOTHING_SHORT(nssi::Request &) override { return {}; }
  Status NOTHING(nssi::Request &) override { return {}; }
  Result<block> ECHO_SHORT(nssi::Request &, const block &bytes) override { return bytes; }
  Result<block> ECHO(nssi::Request &, const block &bytes) override { return bytes; }
  Status TAKE(nssi::Request &, const block &) override { return {}; }
  Status TAKE_BULK(nssi::Request &request, std::uint64_t size_bytes) override {
    auto bytes = first(size_bytes);
    return bytes ? request.get_data(*bytes) : Status(bytes.error());
  }
  Result<double> MEMORY(nssi::Request &) override { return proportional_bytes(); }
  Status GIVE_BULK(nssi::Request &request, std::uint64_t size_bytes) override {
    auto bytes = first(size_bytes);
    return bytes ? request.put_data(*bytes) : Status(bytes.error());
  }

 private:
  Result<std::span<std::byte>> first(std::uint64_t size_bytes) {
    if (size_bytes <= memory_.size()) return std::span<std::byte>(memory_).first(size_bytes);
    return Error{Code::kOutOfRange, "the service has no buffer of that size"};
  }

  PageAligned<std::byte> memory_;
};

}  // namespace

// --- a client --------------------------------------------------------------------------------------------------------

RpcClient::Call RpcClient::start(Procedure procedure) {
  if (!status_.ok()) return {};
  return procedure == Bench::NOTHING_SHORT ? service_.NOTHING_SHORT_async() : service_.NOTHING_async();
}

void RpcClient::call(Procedure procedure) {
  if (status_.ok()) status_ = procedure == Bench::NOTHING_SHORT ? service_.NOTHING_SHORT() : service_.NOTHING();
}

double RpcClient::memory_of_service() {
  if (!status_.ok()) return 0;
  const auto bytes = service_.MEMORY();
  if (!bytes.ok()) status_ = bytes.error();
  return bytes.ok() ? *bytes : 0;
}

void RpcClient::wait(Call &call) {
  if (status_.ok()) status_ = call.wait();
}

void RpcClient::call(Procedure procedure, const block &bytes) {
  if (!status_.ok()) return;
  if (procedure == Bench::TAKE) return void(status_ = service_.TAKE(bytes));
  const auto echo = procedure == Bench::ECHO_SHORT ? service_.ECHO_SHORT(bytes) : service_.ECHO(bytes);
  if (!echo.ok()) return void(status_ = echo.error());
  if (echo->size() != bytes.size()) status_ = Error{Code::kBadMessage, "the echo is not what was sent"};
}

void RpcClient::call(Procedure procedure, const Buffer &buffer, std::uint64_t size_bytes) {
  if (!status_.ok()) return;
  status_ =
      procedure == Bench::TAKE_BULK ? service_.TAKE_BULK(size_bytes, buffer) : service_.GIVE_BULK(size_bytes, buffer);
}

Result<RpcClient::Buffer> RpcClient::allocate(std::uint64_t size_bytes) {
  auto buffer = connection_.runtime.allocate(size_bytes, nnti::Rights::kReadWrite);
  if (buffer) std::ranges::fill(buffer->bytes(), std::byte{1});
  return buffer;
}

Result<RpcClient::Buffer> RpcClient::lend(std::span<std::byte> memory) {
  return connection_.runtime.register_memory(memory, nnti::Rights::kReadWrite);
}

// --- the team --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Board>> run_rpc_team(const Options &options, const ServiceTeam &team, const RpcLead &lead) {
  const auto host = [&](Board &board) {
    Server server(team.memory_bytes);
    return serve(options, team, board, [&](nssi::Runtime &runtime) { return server.add_to(runtime); });
  };
  return run_service_team(options, team, host, [&](const Connection &connection, Lane &lane) {
    RpcClient client(connection);
    auto status = lead(client, lane);
    return client.status().ok() ? status : client.status();
  });
}

}  // namespace bench
