// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/transport.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>

namespace nnti::ucx {

namespace {

using namespace std::chrono_literals;

constexpr unsigned kRoundsPerPoll = 16;
constexpr std::size_t kMostArrived = std::size_t{2} * kCredits;  // of one peer, kCredit frames among them
constexpr auto kPollTime = 1ms;                                  // where UCX has no descriptor to wait on
constexpr auto kGoodbyeTime = 1s;
constexpr auto kPatience = 2s;  // with a peer whose transfer keeps memory that is wanted back

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
                      "registered buffer checks{}",
                      (*worker)->devices(),
                      (*worker)->wait_fd() < 0 ? "; it has no descriptor to wait on and is polled" : "")};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto transport = std::make_unique<UcxTransport>(options);
  if (auto status = transport->start(options.config, options.listen); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

UcxTransport::UcxTransport(const TransportOptions &options) : events_(options.events), peers_(*this, options) {}

Status UcxTransport::start(const nessie::Config &config, bool listen) {
  auto worker = Worker::open(config, *this);
  if (!worker.ok()) return worker.error();
  worker_ = std::move(*worker);
  if (auto status = peers_.configure(config, has_only_tcp(worker_->devices())); !status.ok()) return status.error();
  if (worker_->wait_fd() >= 0) peers_.watch_library(worker_->wait_fd());
  if (!listen) return {};
  const auto host = config.get_or("nnti.ucx.address", best_host());
  if (host.empty())
    return Error{Code::kUnsupported, "no network interface is up; not even the loopback (ip link set lo up)"};
  auto url = peers_.listen(config, host);
  if (!url.ok()) return url.error();
  url_ = url->to_string();
  return {};
}

/// Says goodbye to everybody, and gives what was sent a moment to leave.
UcxTransport::~UcxTransport() {
  for (const auto deadline = Deadline::in(kGoodbyeTime); peers_.say_goodbye() && !deadline.passed();) {
    poll();
    dispatch();
    peers_.pump();
  }
  peers_.clear();
}

Status UcxTransport::can_reach(const nessie::Url &url) const { return peers_.can_reach(url); }

Result<std::unique_ptr<Connecting>> UcxTransport::connect(const nessie::Url &url, Deadline) {
  return peers_.connect(url);
}

std::vector<std::byte> UcxTransport::hello_for(const UcxConnection &connection) const {
  return encode_hello({connection.token(), worker_->address(), peers_.offers_lanes()});
}

// --- memory ---------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<TransportMemory>> UcxTransport::register_memory(const MemoryRegion &region) {
  return std::unique_ptr<TransportMemory>(std::make_unique<Memory>(*this, region));
}

std::optional<MemoryRegion> UcxTransport::find_memory(const RemoteBuffer &buffer) const {
  const Memory *memory = memory_with(buffer.key);
  return memory == nullptr ? std::nullopt : std::optional(memory->region());
}

const Memory *UcxTransport::memory_with(std::uint64_t key) const {
  const auto found = memories_.find(key);
  return found == memories_.end() ? nullptr : found->second;
}

void UcxTransport::wait_for_transfers(const std::function<std::size_t()> &in_flight) {
  for (const auto deadline = Deadline::in(kPatience); in_flight() > 0 && !deadline.passed();) poll();
}

/// Returns when no transfer touches the memory any more. A peer that keeps one going for too long is given up.
void UcxTransport::remove_memory(Memory &memory) {
  memories_.erase(memory.key());
  for (auto &[token, connection] : peers_.all()) connection->leave(memory);
  const auto in_flight = [&] {
    std::size_t count = 0;
    for (auto &[token, connection] : peers_.all()) count += connection->transfers().stop(memory);
    return count;
  };
  wait_for_transfers(in_flight);
  if (in_flight() == 0) return;
  for (auto &[token, connection] : peers_.all())
    if (connection->transfers().stop(memory) > 0) connection->sever();
  wait_for_transfers(in_flight);
}

void UcxTransport::attend_transfers(UcxConnection &connection) {
  if (std::exchange(connection.transfers_have_ended, true)) return;
  with_ended_transfers_.push_back(connection.token());
}

ucs_status_t UcxTransport::send_frame(UcxConnection &connection, Link &link, const FrameHeader &header,
                                      std::span<const std::byte> body) {
  FrameSlot &slot = frames_.take();
  std::memcpy(slot.bytes.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(slot.bytes.data() + sizeof header, body.data(), body.size());
  slot.kind = Work::Kind::kFrame;
  slot.token = connection.token();
  const auto status = link.send_frame(std::span(slot.bytes).first(sizeof header + body.size()), slot);
  if (status != UCS_INPROGRESS) frames_.give_back(slot);
  return status;
}

// --- what UCX reports: it is noted here, and nobody is called -----------------------------------------------------------------

void UcxTransport::on_frame(std::span<const std::byte> bytes) {
  FrameHeader header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  UcxConnection *connection = peers_.find(header.token);
  if (connection == nullptr || connection->reapable()) return;
  if (!decode_frame(bytes) || connection->arrived >= kMostArrived)
    return connection->break_with(
        {Code::kBadMessage, "the peer sends what cannot be read, or more than it may", nessie::Scope::kPeer});
  if (connection->state() == UcxConnection::State::kConnecting) return connection->on_knock(header);
  FrameSlot &slot = frames_.take();
  std::memcpy(slot.bytes.data(), bytes.data(), bytes.size());
  ++connection->arrived;
  arrived_.push_back({&slot, bytes.size()});
}

bool UcxTransport::on_chunk(std::span<const std::byte> bytes, const Payload &payload) {
  ChunkHeader header;
  if (bytes.size() != sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  UcxConnection *connection = peers_.find(header.token);
  if (connection == nullptr || !connection->takes_chunks()) return false;
  if (!decode_chunk(bytes, payload.size_bytes)) {
    connection->break_with({Code::kBadMessage, "the peer sends what cannot be read", nessie::Scope::kPeer});
    return false;
  }
  return connection->transfers().on_chunk(header, payload);
}

void UcxTransport::on_complete(Work &work, ucs_status_t status) {
  UcxConnection *connection = peers_.find(work.token);
  if (work.kind == Work::Kind::kFrame) {
    if (connection) connection->on_sent(status);
    return frames_.give_back(static_cast<FrameSlot &>(work));
  }
  if (connection) connection->transfers().on_complete(work, status);
  chunks_.give_back(static_cast<ChunkSlot &>(work));
}

void UcxTransport::on_failure(std::uint64_t token, ucs_status_t status) {
  if (UcxConnection *connection = peers_.find(token))
    connection->break_with(ucx_error("the peer cannot be reached any more", status));
}

/// Lets UCX work. Returns 0 if it had nothing to do that concerns us.
std::size_t UcxTransport::poll() { return peers_.lanes().poll() + (uses_library() ? poll_worker() : 0); }

std::size_t UcxTransport::poll_worker() {
  std::size_t did = 0;
  for (unsigned round = 0; round < kRoundsPerPoll; ++round) {
    const auto now = worker_->progress();
    did += now;
    if (now == 0) break;
  }
  return did;
}

// --- progress ---------------------------------------------------------------------------------------------------------------

std::size_t UcxTransport::dispatch() {
  std::size_t frames = 0;
  peers_.announce();
  while (!arrived_.empty()) {
    const Arrived arrived = arrived_.front();
    arrived_.pop_front();
    const auto frame = decode_frame(std::span(arrived.slot->bytes).first(arrived.size_bytes));
    if (UcxConnection *connection = peers_.find(frame->header.token)) {
      --connection->arrived;
      connection->on_frame(*frame);
    }
    frames_.give_back(*arrived.slot);
    if (peers_.lanes().anything_to_finish()) peers_.lanes().finish();  // the next frame may be the last
    ++frames;
    if (!with_ended_transfers_.empty()) finish_transfers();  // the next frame may be the last
  }
  return frames;
}

std::size_t UcxTransport::progress() {
  ++depth_;
  const bool ask = peers_.ask_now();
  std::size_t events = ask ? peers_.lanes().poll() : 0;
  if (ask && uses_library()) poll_worker();
  if (!with_ended_transfers_.empty()) events += finish_transfers();
  if (peers_.lanes().anything_to_finish()) events += peers_.lanes().finish();
  events += dispatch();
  if (peers_.look_now(events))
    events += peers_.look([this] {
      poll_worker();
      return std::size_t{0};
    });
  peers_.pump();
  if (peers_.any_to_settle()) events += peers_.settle(poll() == 0 && !anything_noted());
  if (std::exchange(ask_again_, false)) ++events;
  peers_.end_turn(events);
  if (--depth_ == 0) peers_.reap();
  return events;
}

std::size_t UcxTransport::finish_transfers() {
  const auto tokens = std::exchange(with_ended_transfers_, {});
  for (const auto token : tokens) {
    UcxConnection *connection = peers_.find(token);
    if (connection == nullptr) continue;
    connection->transfers_have_ended = false;
    connection->transfers().finish();
  }
  return tokens.size();
}

bool UcxTransport::ready() {
  if (anything_noted() || peers_.must_look()) return true;
  if (peers_.all().empty()) return false;
  poll();
  return anything_noted();
}

bool UcxTransport::arm() {
  if (anything_noted() || peers_.must_look()) return false;
  if (poll() > 0 || anything_noted()) return false;
  peers_.lanes().arm();
  return worker_->wait_fd() < 0 || !uses_library() || worker_->may_block();
}

Deadline UcxTransport::timer() const {
  Deadline first = peers_.timer();
  if (worker_->wait_fd() < 0 && uses_library()) first = first.earlier(Deadline::in(kPollTime));
  return first;
}

}  // namespace nnti::ucx
