// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/transport.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace nnti::ofi {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSpareReceives = 8;
constexpr std::size_t kCreditFrames = 4;  // kCredit frames that may be under way beside the credits
constexpr auto kRetryTime = 1ms;
constexpr auto kGoodbyeTime = 1s;

/// Whether libfabric moves data by the sockets that any process can have.
bool has_only_tcp(std::string_view provider) {
  return provider.starts_with("tcp") || provider.starts_with("net") || provider.starts_with("sockets");
}

}  // namespace

// --- opening ------------------------------------------------------------------------------------------------------------

TransportInfo survey(const nessie::Config &config) {
  auto fabric = Fabric::open(config);
  if (!fabric.ok()) return {"ofi", false, fabric.error().message, list_providers(config, nullptr)};
  auto facts = list_providers(config, &(*fabric)->info());
  facts.push_back((*fabric)->describe_cache());
  facts.push_back(
      {"messages in place", fmt::format("up to {} bytes, over a lane {}", kMaxInlineBytes, kMaxMessageBytes)});
  facts.push_back({"credits", fmt::format("{} frames each way of a connection", kCredits)});
  return {"ofi", true,
          fmt::format("libfabric's provider {} at {}; the owner of a registered buffer writes into, or reads from, the "
                      "memory that the other side exposes for the transfer",
                      (*fabric)->provider(), (*fabric)->host()),
          std::move(facts)};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto fabric = Fabric::open(options.config);
  if (!fabric.ok()) return fabric.error();
  auto transport = std::make_unique<OfiTransport>(options, std::move(*fabric));
  if (auto status = transport->start(options.config, options.listen); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

OfiTransport::OfiTransport(const TransportOptions &options, std::unique_ptr<Fabric> fabric)
    : events_(options.events),
      fabric_(std::move(fabric)),
      peers_(*this, options),
      slots_(fabric_.get(), kMaxPostedFrameBytes) {}

Status OfiTransport::start(const nessie::Config &config, bool listen) {
  if (auto status = peers_.configure(config, has_only_tcp(fabric_->provider())); !status.ok()) return status.error();
  if (fabric_->wait_fd() >= 0) peers_.watch_library(fabric_->wait_fd());
  post_receives();
  if (!listen) return {};
  auto url = peers_.listen(config, fabric_->host());
  if (!url.ok()) return url.error();
  // The list of an endpoint's URLs is joined by ';', which libfabric's names contain.
  auto &provider = url->query["provider"] = fabric_->provider();
  std::replace(provider.begin(), provider.end(), ';', '+');
  url_ = url->to_string();
  return {};
}

/// Says goodbye to everybody, and gives what was sent a moment to leave.
OfiTransport::~OfiTransport() {
  for (const auto deadline = Deadline::in(kGoodbyeTime); peers_.say_goodbye() && !deadline.passed();) {
    poll();
    dispatch();
    peers_.pump();
  }
  peers_.clear();
}

Status OfiTransport::can_reach(const nessie::Url &url) const {
  auto provider = fabric_->provider();
  std::replace(provider.begin(), provider.end(), ';', '+');
  if (auto theirs = url.query.find("provider"); theirs != url.query.end() && theirs->second != provider)
    return Error{Code::kUnsupported,
                 fmt::format("it uses libfabric's provider {}, this process {}; set nnti.ofi.provider", theirs->second,
                             provider)};
  return peers_.can_reach(url);
}

Result<std::unique_ptr<Connecting>> OfiTransport::connect(const nessie::Url &url, Deadline) {
  return peers_.connect(url);
}

Result<std::unique_ptr<TransportMemory>> OfiTransport::register_memory(const MemoryRegion &region) {
  auto memory = std::make_unique<Memory>(*this, region);
  if (auto status = memory->keep_registered(); !status.ok()) return status.error();
  return std::unique_ptr<TransportMemory>(std::move(memory));
}

std::optional<MemoryRegion> OfiTransport::find_memory(const RemoteBuffer &buffer) const {
  auto found = memories_.find(buffer.key);
  if (found == memories_.end()) return std::nullopt;
  return MemoryRegion{found->second->bytes(), found->second->rights(), -1};
}

std::vector<std::byte> OfiTransport::hello_for(const OfiConnection &connection) const {
  return encode_hello({connection.token(), fabric_->provider(), fabric_->name(), peers_.offers_lanes()});
}

bool OfiTransport::post_frame(OfiConnection &connection, const FrameHeader &header, std::span<const std::byte> body) {
  Slot *slot = slots_.take();
  if (slot == nullptr) return false;
  std::memcpy(slot->data, &header, sizeof header);
  if (!body.empty()) std::memcpy(slot->data + sizeof header, body.data(), body.size());
  slot->kind = Work::Kind::kSend;
  slot->token = connection.token();
  const auto rc = fi_send(fabric_->endpoint(), slot->data, sizeof header + body.size(), slot->descriptor,
                          connection.address(), static_cast<Work *>(slot));
  if (rc == 0) return true;
  slots_.give_back(slot);
  if (rc == -FI_EAGAIN)
    stalled_ = true;
  else
    connection.break_with(fabric_error("cannot send to the peer", rc));
  return false;
}

// --- the provider's queue ---------------------------------------------------------------------------------------------------

std::size_t OfiTransport::wanted_receives() const {
  const std::size_t wanted = kSpareReceives + peers_.without_lane() * (kCredits + kCreditFrames);
  return std::min<std::size_t>(wanted, fabric_->info().rx_attr->size);
}

void OfiTransport::post_receives() {
  while (receives_posted_ < wanted_receives()) {
    Slot *slot = slots_.take();
    if (slot == nullptr || !post_receive(*slot)) return;
  }
}

bool OfiTransport::post_receive(Slot &slot) {
  slot.kind = Work::Kind::kReceive;
  const auto rc = fi_recv(fabric_->endpoint(), slot.data, kMaxPostedFrameBytes, slot.descriptor, FI_ADDR_UNSPEC,
                          static_cast<Work *>(&slot));
  if (rc == 0)
    ++receives_posted_;
  else
    slots_.give_back(&slot);
  return rc == 0;
}

std::size_t OfiTransport::poll() { return peers_.lanes().poll() + (uses_library() ? poll_queue() : 0); }

std::size_t OfiTransport::poll_queue() {
  std::array<fi_cq_msg_entry, 32> entries;
  std::size_t handled = 0;
  for (;;) {
    const auto count = fi_cq_read(fabric_->queue(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
      read_error();
      ++handled;
      continue;
    }
    if (count <= 0) return handled;
    for (ssize_t i = 0; i < count; ++i)
      if (entries[i].op_context != nullptr)
        on_completion(*static_cast<Work *>(entries[i].op_context), entries[i].len, 0);
    handled += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < entries.size()) return handled;
  }
}

void OfiTransport::read_error() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(fabric_->queue(), &entry, 0) <= 0 || entry.op_context == nullptr) return;
  on_completion(*static_cast<Work *>(entry.op_context), 0, entry.err == 0 ? FI_EIO : entry.err);
}

/// Notes what happened; calls nobody.
void OfiTransport::on_completion(Work &work, std::size_t size_bytes, int error) {
  if (work.kind == Work::Kind::kReceive) {
    --receives_posted_;
    arrived_.push_back({static_cast<Slot *>(&work), error == 0 ? size_bytes : 0});
  } else if (work.kind == Work::Kind::kSend) {
    Slot &slot = static_cast<Slot &>(work);
    if (OfiConnection *connection = peers_.find(slot.token)) {
      connection->on_sent();
      if (error != 0) connection->break_with(fabric_error("the peer cannot be reached any more", error));
    }
    slots_.give_back(&slot);
  } else {
    Chunk &chunk = static_cast<Chunk &>(work);
    --chunk.served->in_flight;
    chunk.lease.reset();
    if (error != 0) on_failed_chunk(*chunk.served, error);
    free_chunks_.push_back(&chunk);
  }
}

/// The provider ends the connection when a transfer fails: whoever asked for it asks again over the next one.
void OfiTransport::on_failed_chunk(Served &served, int error) {
  if (served.result != Code::kOk) return;
  served.result = Code::kIo;
  if (OfiConnection *connection = peers_.find(served.token))
    connection->break_with(fabric_error("a transfer with the peer failed", error));
}

std::size_t OfiTransport::dispatch() {
  std::size_t frames = 0;
  peers_.announce();
  while (!arrived_.empty()) {
    const Arrived arrived = arrived_.front();
    arrived_.pop_front();
    if (auto frame = decode_frame({arrived.slot->data, arrived.size_bytes}))
      if (OfiConnection *connection = peers_.find(frame->header.token)) connection->on_frame(*frame);
    if (peers_.lanes().anything_to_finish()) peers_.lanes().finish();  // the next frame may be the last
    if (arrived.slot->kind == Work::Kind::kFromLane)
      lane_slots_.give_back(arrived.slot);
    else if (receives_posted_ < wanted_receives())
      post_receive(*arrived.slot);
    else
      slots_.give_back(arrived.slot);
    ++frames;
  }
  return frames;
}

// --- progress ---------------------------------------------------------------------------------------------------------------

std::size_t OfiTransport::progress() {
  ++depth_;
  std::size_t events = peers_.ask_now() ? poll() : 0;
  if (peers_.lanes().anything_to_finish()) events += peers_.lanes().finish();
  events += dispatch();
  stalled_ = false;
  if (peers_.look_now(events)) events += look_at_sockets();
  if (!served_.empty()) continue_served();
  peers_.pump();
  if (peers_.any_to_settle()) events += peers_.settle(poll() == 0 && arrived_.empty());
  peers_.end_turn(events);
  if (--depth_ == 0) peers_.reap();
  return events;
}

std::size_t OfiTransport::look_at_sockets() {
  fabric_->collect_registrations();
  const std::size_t events = peers_.look([this] { return poll_queue(); });
  if (watch_at_.passed()) watch_frames();
  return events;
}

void OfiTransport::watch_frames() {
  if (peers_.keep_alive().heartbeat.count() == 0) return;
  watch_at_ = Deadline::in(peers_.keep_alive().heartbeat);
  for (auto &[token, connection] : peers_.all()) connection->watch_frames();
}

bool OfiTransport::ready() {
  if (!arrived_.empty() || peers_.must_look()) return true;
  return !peers_.all().empty() && (poll() > 0 || peers_.lanes().anything_to_finish());
}

bool OfiTransport::arm() {
  if (!arrived_.empty() || peers_.must_look()) return false;
  if (poll() > 0 || peers_.lanes().anything_to_finish()) return false;
  peers_.lanes().arm();
  fabric_->collect_registrations();
  return fabric_->wait_fd() < 0 || !uses_library() || fabric_->may_block();
}

Deadline OfiTransport::timer() const {
  Deadline first = peers_.timer();
  const bool poll = fabric_->wait_fd() < 0 && uses_library();
  if (stalled_ || poll) first = first.earlier(Deadline::in(kRetryTime));
  const auto expects = [](const auto &entry) { return entry.second->expects_frames(); };
  if (peers_.keep_alive().heartbeat.count() != 0 && std::any_of(peers_.all().begin(), peers_.all().end(), expects))
    first = first.earlier(watch_at_);
  return first;
}

}  // namespace nnti::ofi
