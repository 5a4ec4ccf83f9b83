// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/transport.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <sstream>

namespace nnti::ucx {

namespace {

constexpr unsigned kRoundsPerPoll = 16;
constexpr auto kPollTime = std::chrono::milliseconds(1);  // where UCX has no descriptor to wait on

/// Whether UCX can reach another node by nothing but the sockets that any process can have. What stays within the node
/// does not tell of a peer's end, and is not used.
bool has_only_tcp(const std::string &devices) {
  std::istringstream words(devices);
  for (std::string device; words >> device;) {
    const bool local = device.find("/memory") != std::string::npos;
    if (!local && !device.starts_with("tcp/")) return false;
  }
  return devices.find("tcp/") != std::string::npos;
}

/// For a worker that only looks.
struct NoEvents final : WorkerEvents {
  void on_frame(std::span<const std::byte>) override {}
  bool on_chunk(std::span<const std::byte>, const Payload &) override { return false; }
  void on_complete(Work &, ucs_status_t) override {}
  void on_failure(std::uint64_t, ucs_status_t) override {}
};

}  // namespace

// --- opening ------------------------------------------------------------------------------------------------------------

TransportInfo survey(const nessie::Config &config) {
  NoEvents nobody;
  auto worker = Worker::open(config, nobody);
  if (!worker.ok()) return {"ucx", false, worker.error().message};
  return {"ucx", true,
          fmt::format("UCX, which chooses for each peer among {}; bulk data goes in chunks, which the owner of a "
                      "registered buffer checks{}{}",
                      (*worker)->devices(),
                      (*worker)->wait_fd() < 0 ? "; it has no descriptor to wait on and is polled" : "",
                      has_only_tcp((*worker)->devices()) ? framed::kOnlyIfNamed : "")};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto transport = std::make_unique<UcxTransport>(options);
  if (auto status = transport->start(options); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

Status UcxTransport::start(const TransportOptions &options) {
  auto worker = Worker::open(options.config, *this);
  if (!worker.ok()) return worker.error();
  network_.worker = std::move(*worker);
  if (!options.is_named && has_only_tcp(network_.worker->devices()))
    return Error{Code::kNoResult, "UCX has nothing but TCP here"};
  if (auto status = configure(options.config); !status.ok()) return status.error();
  if (network_.worker->wait_fd() >= 0) watch_library(network_.worker->wait_fd());
  if (!options.listen) return {};
  auto url = listen(options.config, options.config.get_or("nnti.ucx.address", best_host()));
  if (!url.ok()) return url.error();
  set_url(*url);
  return {};
}

// --- what UCX reports: it is noted here, and nobody is called -----------------------------------------------------------------

bool UcxTransport::on_chunk(std::span<const std::byte> bytes, const Payload &payload) {
  Chunk chunk;
  if (bytes.size() != sizeof chunk) return false;
  std::memcpy(&chunk, bytes.data(), sizeof chunk);
  UcxConnection *connection = find_peer(chunk.token);
  if (connection == nullptr || !connection->moves_data()) return false;
  if (decode_chunk(bytes, payload.size_bytes)) return connection->on_chunk(chunk.header, payload);
  connection->break_protocol("the peer sends what cannot be read");
  return false;
}

void UcxTransport::on_complete(Work &work, ucs_status_t status) {
  UcxConnection *connection = find_peer(work.token);
  if (work.kind == Work::Kind::kFrame) {
    if (connection) connection->on_frame_sent(status);
    return network_.frames.give_back(static_cast<FrameSlot &>(work));
  }
  auto &slot = static_cast<ChunkSlot &>(work);
  if (connection) connection->on_chunk_done(slot, status);
  network_.chunks.give_back(slot);
}

void UcxTransport::on_failure(std::uint64_t token, ucs_status_t status) {
  if (UcxConnection *connection = find_peer(token))
    connection->break_with(ucx_error("the peer cannot be reached any more", status));
}

/// Lets UCX work.
std::size_t UcxTransport::poll() {
  std::size_t did = 0;
  for (unsigned round = 0; round < kRoundsPerPoll; ++round) {
    const auto now = network_.worker->progress();
    did += now;
    if (now == 0) break;
  }
  return did;
}

bool UcxTransport::prepare_to_sleep() { return sleeps_without_ucx() || network_.worker->may_block(); }

Deadline UcxTransport::timer() const {
  const bool polls = network_.worker->wait_fd() < 0 && !connections().empty();
  const auto first = Transport::timer();
  return polls ? first.earlier(Deadline::in(kPollTime)) : first;
}

}  // namespace nnti::ucx
