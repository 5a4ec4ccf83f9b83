// SPDX-License-Identifier: BSD-3-Clause
#include "rpc_team.hpp"

#include "machine.hpp"
#include "page_aligned.hpp"

#include <algorithm>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr auto kTeamLimit = std::chrono::seconds(300), kSilence = std::chrono::seconds(30);
constexpr auto kGlance = std::chrono::milliseconds(20);

Result<std::unique_ptr<nssi::Runtime>> open_runtime(const Options &options, const RpcWaiting &waiting, bool listen) {
  nssi::RuntimeOptions runtime;
  runtime.endpoint.transports = {options.transport};
  runtime.endpoint.listen = listen;
  for (const auto &[key, value] : options.settings) runtime.endpoint.config.set(key, value);
  if (*waiting.spin_us) runtime.endpoint.config.set("nnti.spin_us", waiting.spin_us);
  return nssi::Runtime::open(std::move(runtime));
}

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

/// A client comes to a first meeting before it measures, and to a second one when it has left.
Status serve(const Options &options, const RpcTeam &team, Board &board) {
  Server server(team.memory_bytes);
  auto runtime = open_runtime(options, team.waiting, true);
  if (!runtime) return runtime.error();
  if (auto status = server.add_to(**runtime); !status.ok()) return status;
  board.publish_address(team.clients, (*runtime)->url());
  std::thread watcher([&] {
    while (!board.stopped() && !board.all_here(team.clients, 2)) std::this_thread::sleep_for(kGlance);
    (*runtime)->stop();
  });
  (*runtime)->run();
  watcher.join();
  return {};
}

Status lead_once(const Options &options, const RpcTeam &team, Board &board, int member, const RpcLead &lead) {
  RpcClient client;
  if (auto status = client.open(options, team.waiting); !status.ok()) return status;
  if (auto status = client.connect(board.address_of(team.clients)); !status.ok()) return status;
  if (!board.meet(team.clients, 1)) return Error{Code::kTimedOut, "not all clients of the workload came"};
  auto status = lead(client, board.lane(member));
  return client.status().ok() ? status : client.status();
}

}  // namespace

// --- a client --------------------------------------------------------------------------------------------------------

Status RpcClient::open(const Options &options, const RpcWaiting &waiting) {
  auto runtime = open_runtime(options, waiting, false);
  if (!runtime) return runtime.error();
  runtime_ = std::move(*runtime);
  return {};
}

Status RpcClient::connect(const std::string &url) {
  if (url.empty()) return Error{Code::kPeerLost, "the service of the workload did not start"};
  auto peer = runtime_->connect(url, Deadline::in(kSilence));
  if (!peer) return peer.error();
  service_.emplace(*runtime_, *peer);
  return {};
}

RpcClient::Call RpcClient::start(Procedure procedure) {
  if (!status_.ok()) return {};
  return procedure == Bench::NOTHING_SHORT ? service_->NOTHING_SHORT_async() : service_->NOTHING_async();
}

void RpcClient::call(Procedure procedure) {
  if (status_.ok()) status_ = procedure == Bench::NOTHING_SHORT ? service_->NOTHING_SHORT() : service_->NOTHING();
}

void RpcClient::wait(Call &call) {
  if (status_.ok()) status_ = call.wait();
}

void RpcClient::call(Procedure procedure, const block &bytes) {
  if (!status_.ok()) return;
  if (procedure == Bench::TAKE) return void(status_ = service_->TAKE(bytes));
  const auto echo = procedure == Bench::ECHO_SHORT ? service_->ECHO_SHORT(bytes) : service_->ECHO(bytes);
  if (!echo.ok()) return void(status_ = echo.error());
  if (echo->size() != bytes.size()) status_ = Error{Code::kBadMessage, "the echo is not what was sent"};
}

void RpcClient::call(Procedure procedure, const Buffer &buffer, std::uint64_t size_bytes) {
  if (!status_.ok()) return;
  status_ =
      procedure == Bench::TAKE_BULK ? service_->TAKE_BULK(size_bytes, buffer) : service_->GIVE_BULK(size_bytes, buffer);
}

Result<RpcClient::Buffer> RpcClient::allocate(std::uint64_t size_bytes) {
  auto buffer = runtime_->allocate(size_bytes, nnti::Rights::kReadWrite);
  if (buffer) std::ranges::fill(buffer->bytes(), std::byte{1});
  return buffer;
}

Result<RpcClient::Buffer> RpcClient::lend(std::span<std::byte> memory) {
  return runtime_->register_memory(memory, nnti::Rights::kReadWrite);
}

// --- the team --------------------------------------------------------------------------------------------------------

std::unique_ptr<Board> board_for(const RpcTeam &team) { return std::make_unique<Board>(team.clients + 1); }

Status run_rpc_team(const Options &options, const RpcTeam &team, Board &board, const RpcLead &lead) {
  auto housing = options.transport == "inproc" ? Housing::kThreads : Housing::kProcesses;
  return run_crew(board, team.clients + 1, housing, kTeamLimit, [&](Board &all, int member) -> Status {
    Pin pin(member == team.clients ? kCoreOfService : core_of_client(member));
    if (member == team.clients) return serve(options, team, all);
    auto status = lead_once(options, team, all, member, lead);
    all.arrive();
    return status;
  });
}

}  // namespace bench
