// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/transport.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace nnti::ofi {

namespace {

constexpr std::size_t kSpareReceives = 8;
constexpr std::size_t kFreeFrames = 4;  // that cost no credit, and may be under way beside those that do
constexpr auto kRetryTime = std::chrono::milliseconds(1);

/// The list of an endpoint's URLs is joined by ';', which libfabric's names contain.
std::string name_in_url(std::string provider) {
  std::ranges::replace(provider, ';', '+');
  return provider;
}

}  // namespace

// --- opening ------------------------------------------------------------------------------------------------------------

TransportInfo survey(const nessie::Config &config) {
  auto fabric = Fabric::open(config);
  if (!fabric.ok()) return {"ofi", false, fabric.error().message, list_providers(config, nullptr)};
  auto facts = list_providers(config, &(*fabric)->info());
  facts.push_back((*fabric)->describe_cache());
  facts.push_back({"messages in place", fmt::format("up to {} bytes", kMaxPostedMessageBytes)});
  facts.push_back({"credits", fmt::format("{} frames each way of a connection", framed::Connection::kCredits)});
  return {"ofi", true,
          fmt::format("libfabric's provider {} at {}; the owner of a registered buffer writes into, or reads from, the "
                      "memory that the other side exposes for the transfer{}",
                      (*fabric)->provider(), (*fabric)->host(), (*fabric)->has_only_tcp() ? framed::kOnlyIfNamed : ""),
          std::move(facts)};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto fabric = Fabric::open(options.config);
  if (!fabric.ok()) return fabric.error();
  if (!options.is_named && (*fabric)->has_only_tcp())
    return Error{Code::kNoResult, "libfabric has nothing but TCP here"};
  auto transport = std::make_unique<OfiTransport>(options, std::move(*fabric));
  if (auto status = transport->start(options.config, options.listen); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

Status OfiTransport::start(const nessie::Config &config, bool listens) {
  if (auto status = configure(config); !status.ok()) return status.error();
  if (fabric_->wait_fd() >= 0) watch_library(fabric_->wait_fd());
  post_receives();
  if (!listens) return {};
  auto url = listen(config, fabric_->host());
  if (!url.ok()) return url.error();
  url->query["provider"] = name_in_url(fabric_->provider());
  set_url(*url);
  return {};
}

Status OfiTransport::can_reach(const nessie::Url &url) const {
  const auto provider = name_in_url(fabric_->provider());
  if (auto theirs = url.query.find("provider"); theirs != url.query.end() && theirs->second != provider)
    return Error{Code::kUnsupported,
                 fmt::format("it uses libfabric's provider {}, this process {}; set nnti.ofi.provider", theirs->second,
                             provider)};
  return Transport::can_reach(url);
}

Result<std::unique_ptr<TransportMemory>> OfiTransport::register_memory(const MemoryRegion &region) {
  auto memory = std::make_unique<Memory>(*this, *fabric_, region);
  if (auto status = memory->keep_registered(); !status.ok()) return status.error();
  return std::unique_ptr<TransportMemory>(std::move(memory));
}

// --- the provider's queue ---------------------------------------------------------------------------------------------------

bool OfiTransport::post_frame(OfiConnection &connection, const framed::FrameHeader &header,
                              std::span<const std::byte> body) {
  Slot *slot = slots_->take();
  if (slot == nullptr) return false;
  std::memcpy(slot->data, &header, sizeof header);
  if (!body.empty()) std::memcpy(slot->data + sizeof header, body.data(), body.size());
  slot->kind = Work::Kind::kSend;
  slot->token = connection.token();
  const auto rc = fi_send(fabric_->endpoint(), slot->data, sizeof header + body.size(), slot->descriptor,
                          connection.address(), static_cast<Work *>(slot));
  if (rc == 0) return true;
  slots_->give_back(slot);
  if (rc == -FI_EAGAIN)
    stalled_ = true;
  else
    connection.break_with(fabric_error("cannot send to the peer", rc));
  return false;
}

std::size_t OfiTransport::wanted_receives() const {
  const std::size_t wanted = kSpareReceives + connections().size() * (framed::Connection::kCredits + kFreeFrames);
  return std::min<std::size_t>(wanted, fabric_->info().rx_attr->size);
}

void OfiTransport::post_receives() {
  while (receives_posted_ < wanted_receives()) {
    Slot *slot = slots_->take();
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
    slots_->give_back(&slot);
  return rc == 0;
}

/// Of a frame that was handled.
void OfiTransport::give_back(void *slot) {
  if (receives_posted_ < wanted_receives())
    post_receive(*static_cast<Slot *>(slot));
  else
    slots_->give_back(static_cast<Slot *>(slot));
}

std::size_t OfiTransport::poll() {
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
    Slot &slot = static_cast<Slot &>(work);
    note_frame({slot.data, error == 0 ? size_bytes : 0}, &slot);
  } else if (work.kind == Work::Kind::kSend) {
    Slot &slot = static_cast<Slot &>(work);
    if (OfiConnection *connection = find_peer(slot.token)) {
      connection->on_sent();
      if (error != 0) connection->break_with(fabric_error("the peer cannot be reached any more", error));
    }
    slots_->give_back(&slot);
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
  if (OfiConnection *connection = find_peer(served.token))
    connection->break_with(fabric_error("a transfer with the peer failed", error));
}

// --- progress ---------------------------------------------------------------------------------------------------------------

void OfiTransport::go_on() {
  stalled_ = false;
  if (!served_.empty()) continue_served();
}

void OfiTransport::look_around() {
  fabric_->collect_registrations();
  if (!watch_at_.passed() || keep_alive().heartbeat.count() == 0) return;
  watch_at_ = Deadline::in(keep_alive().heartbeat);
  for (auto &[token, connection] : connections()) static_cast<OfiConnection &>(*connection).watch_frames();
}

bool OfiTransport::prepare_to_sleep() {
  fabric_->collect_registrations();
  return fabric_->wait_fd() < 0 || connections().empty() || fabric_->may_block();
}

Deadline OfiTransport::timer() const {
  Deadline first = Transport::timer();
  const bool polls = fabric_->wait_fd() < 0 && !connections().empty();
  if (stalled_ || polls) first = first.earlier(Deadline::in(kRetryTime));
  const auto expects = [](const auto &entry) {
    return static_cast<const OfiConnection &>(*entry.second).expects_frames();
  };
  if (keep_alive().heartbeat.count() != 0 && std::ranges::any_of(connections(), expects))
    first = first.earlier(watch_at_);
  return first;
}

}  // namespace nnti::ofi
