// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/faulty/transport.hpp"

#include "nnti/transports/faulty/transport_impl.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

namespace nnti::faulty {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPrefix = "faulty+";

class FaultyConnecting final : public Connecting {
 public:
  FaultyConnecting(FaultyTransport &transport, std::unique_ptr<Connecting> inner)
      : transport_(transport), inner_(std::move(inner)) {}
  std::optional<Result<Connection *>> advance() override {
    if (transport_.dead()) return std::nullopt;
    auto outcome = inner_->advance();
    if (!outcome || !outcome->ok()) return outcome;
    return &transport_.adopt(***outcome);
  }

 private:
  FaultyTransport &transport_;
  std::unique_ptr<Connecting> inner_;
};

}  // namespace

std::optional<std::string_view> name_of_inner(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return name.substr(kPrefix.size());
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto faults = Faults::load(options.config);
  if (!faults.ok()) return faults.error();
  auto transport = std::make_unique<FaultyTransport>(options, *faults);
  if (auto status = transport->open_inner(options); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

FaultyTransport::FaultyTransport(const TransportOptions &options, const Faults &faults)
    : Host(options, faults), name_(options.name) {}

Status FaultyTransport::open_inner(const TransportOptions &options) {
  const auto inner_name = name_of_inner(name_);
  const auto kinds = known_kinds(options.extra_transports);
  const auto kind = std::ranges::find(kinds, inner_name.value_or(""), &TransportKind::name);
  if (kind == kinds.end())
    return Error{Code::kUnsupported, fmt::format("'{}' is no transport with a faulty network; say faulty+shm", name_)};
  auto inner = kind->open({options.credential,
                           options.config,
                           *this,
                           options.poller,
                           options.listen,
                           kind->name,
                           options.time,
                           {},
                           options.sealed});
  if (!inner.ok()) return inner.error();
  inner_ = std::move(*inner);
  return {};
}

FaultyTransport::~FaultyTransport() {
  for (auto &[id, connection] : connections_) connection->close();
  inner_.reset();
}

std::string FaultyTransport::url() const {
  const auto url = inner_ ? inner_->url() : std::string();
  return url.empty() ? url : std::string(kPrefix) + url;
}

nessie::Url FaultyTransport::inner_url(const nessie::Url &url) const {
  auto inner = url;
  inner.transport = name_of_inner(url.transport).value_or(url.transport);
  return inner;
}

Result<std::unique_ptr<Connecting>> FaultyTransport::connect(const nessie::Url &url, Deadline deadline) {
  if (!outage_ends_.reached(moment()) || !inner_)
    return Error{Code::kPeerLost, "faulty: the network is down", nessie::Scope::kPeer, ENETUNREACH};
  auto connecting = inner_->connect(inner_url(url), deadline);
  if (!connecting.ok()) return connecting.error();
  return std::unique_ptr<Connecting>(std::make_unique<FaultyConnecting>(*this, std::move(*connecting)));
}

Result<std::unique_ptr<TransportMemory>> FaultyTransport::register_memory(const MemoryRegion &region) {
  if (!inner_) return Error{Code::kPeerLost, "faulty: this process is dead"};
  return register_inside<[](Connection &peer) { return static_cast<FaultyConnection &>(peer).inner(); }>(*inner_,
                                                                                                         region);
}

// --- connections ------------------------------------------------------------------------------------------------------

FaultyConnection &FaultyTransport::adopt(Connection &inner) {
  inner.peer = PeerId{next_id_++};
  return *(connections_[inner.peer.value] = std::make_unique<FaultyConnection>(*this, inner));
}

FaultyConnection *FaultyTransport::find(const Connection &inner) const {
  const auto found = connections_.find(inner.peer.value);
  return found == connections_.end() || found->second->over() ? nullptr : found->second.get();
}

void FaultyTransport::accepted(Connection &inner) { events_.accepted(adopt(inner)); }

void FaultyTransport::message(Connection &inner, MessageKind kind, std::span<const std::byte> message) {
  if (auto *connection = find(inner); connection && connection->lets_through(kind))
    events_.message(*connection, kind, message);
}

void FaultyTransport::lost(Connection &inner, Loss loss, const Error &error) {
  if (auto *connection = find(inner)) connection->on_inner_lost(loss, error);
}

void FaultyTransport::die() {
  for (auto &[id, connection] : connections_) connection->die();
  inner_.reset();
}

// --- progress ---------------------------------------------------------------------------------------------------------

std::size_t FaultyTransport::progress() {
  if (!inner_) return 0;
  ++depth_;
  ++turn_;
  std::size_t events = inner_->progress();
  for (auto &[id, connection] : connections_) events += connection->turn();
  if (--depth_ == 0) reap();
  return events;
}

void FaultyTransport::reap() {
  std::erase_if(connections_, [](const auto &entry) { return entry.second->over(); });
}

void FaultyTransport::disarm(bool fd_ready) {
  if (inner_) inner_->disarm(fd_ready);
}

Deadline FaultyTransport::timer() const {
  Deadline first = inner_ ? inner_->timer() : Deadline::never();
  for (const auto &[id, connection] : connections_) first = first.earlier(Deadline::at(connection->next_turn()));
  return first;
}

}  // namespace nnti::faulty
