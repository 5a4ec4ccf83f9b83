// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/sealing/transport.hpp"

namespace nnti::sealing {
namespace {

/// A link that breaks before both sides have their keys is made again: nobody above could know yet that it broke.
class SealedConnecting final : public Connecting {
 public:
  SealedConnecting(SealedTransport &transport, nessie::Url url, Deadline deadline)
      : transport_(transport), url_(std::move(url)), deadline_(deadline) {}
  ~SealedConnecting() override {
    transport_.why_refused(id_);
    if (auto *connection = transport_.find(id_)) connection->close();
  }

  Status begin() {
    auto inner = transport_.inner().connect(url_, deadline_);
    if (!inner.ok()) return inner.error();
    inner_ = std::move(*inner);
    return {};
  }

  std::optional<Result<Connection *>> advance() override {
    if (inner_) {
      auto outcome = inner_->advance();
      if (!outcome || !outcome->ok()) return outcome;
      inner_.reset();
      id_ = transport_.adopt(***outcome, true).below().peer.value;
    }
    if (auto refusal = transport_.why_refused(id_)) return on_refusal(*refusal);
    auto *connection = transport_.find(id_);
    if (connection == nullptr) return Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer};
    if (connection->state() != SealedConnection::State::kOpen) return std::nullopt;
    id_ = 0;
    return connection;
  }

 private:
  std::optional<Result<Connection *>> on_refusal(const SealedTransport::Refusal &refusal) {
    id_ = 0;
    if (refusal.loss == Loss::kGone || deadline_.passed()) return refusal.error;
    if (auto status = begin(); !status.ok()) return status.error();
    return std::nullopt;
  }

  SealedTransport &transport_;
  const nessie::Url url_;
  const Deadline deadline_;
  std::unique_ptr<Connecting> inner_;
  std::uint64_t id_ = 0;
};

}  // namespace

Result<std::unique_ptr<Transport>> open(const TransportOptions &options, const Opener &open_inner) {
  auto transport = std::make_unique<SealedTransport>(options);
  if (auto status = transport->open_inner(options, open_inner); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

Status SealedTransport::open_inner(const TransportOptions &options, const Opener &open) {
  auto inner = open({options.credential, options.config, *this, options.poller, options.listen, options.name,
                     options.time, options.extra_transports, true, options.is_named});
  if (!inner.ok()) return inner.error();
  inner_ = std::move(*inner);
  return {};
}

SealedTransport::~SealedTransport() {
  for (auto &[id, connection] : connections_) connection->close();
  connections_.clear();  // their windows are registered with the transport below
  inner_.reset();
}

Result<std::unique_ptr<Connecting>> SealedTransport::connect(const nessie::Url &url, Deadline deadline) {
  auto connecting = std::make_unique<SealedConnecting>(*this, url, deadline);
  if (auto status = connecting->begin(); !status.ok()) return status.error();
  return std::unique_ptr<Connecting>(std::move(connecting));
}

Result<std::unique_ptr<TransportMemory>> SealedTransport::register_memory(const MemoryRegion &region) {
  return register_inside<[](Connection &peer) { return &static_cast<SealedConnection &>(peer).below(); }>(*inner_,
                                                                                                          region);
}

SealedConnection &SealedTransport::adopt(Connection &inner, bool we_connected) {
  inner.peer = PeerId{next_id_++};
  auto connection = std::make_unique<SealedConnection>(*this, inner, we_connected);
  return *(connections_[inner.peer.value] = std::move(connection));
}

SealedConnection *SealedTransport::find(std::uint64_t id) const {
  auto found = connections_.find(id);
  if (found == connections_.end() || found->second->state() == SealedConnection::State::kEnded) return nullptr;
  return found->second.get();
}

std::optional<SealedTransport::Refusal> SealedTransport::why_refused(std::uint64_t id) {
  auto node = refusals_.extract(id);
  return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
}

void SealedTransport::message(Connection &inner, MessageKind kind, std::span<const std::byte> message) {
  if (auto *connection = find(inner.peer.value)) connection->on_message(kind, message);
}

void SealedTransport::lost(Connection &inner, Loss loss, const Error &error) {
  if (auto *connection = find(inner.peer.value)) connection->on_lost(loss, error);
}

std::size_t SealedTransport::progress() {
  ++depth_;
  auto events = inner_->progress();
  for (auto &[id, connection] : connections_) events += connection->pump();
  if (--depth_ == 0 && any_to_reap_) reap();
  return events;
}

/// The connections below that are closed are reaped by their transport in its own progress(), which comes later.
void SealedTransport::reap() {
  any_to_reap_ = false;
  std::erase_if(connections_,
                [](const auto &entry) { return entry.second->state() == SealedConnection::State::kEnded; });
}

}  // namespace nnti::sealing
