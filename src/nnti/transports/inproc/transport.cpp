// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/inproc/transport.hpp"

#include "nnti/transports/inproc/memory.hpp"
#include "nnti/transports/inproc/transport_impl.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

namespace nnti::inproc {
namespace {

constexpr std::size_t kEventsPerTurn = 256;

class InprocConnecting final : public Connecting {
 public:
  InprocConnecting(InprocTransport &transport, std::shared_ptr<Link> link)
      : transport_(transport), link_(std::move(link)) {}
  ~InprocConnecting() override {
    link_->early.clear();  // they hold the link
    if (std::exchange(link_->is_awaited, false) && link_->state.exchange(LinkState::kGone) == LinkState::kAccepted)
      link_->ports[1]->post({Item::Kind::kEnd, link_, 1, {}});
  }

  std::optional<Result<Connection *>> advance() override {
    switch (link_->state.load(std::memory_order_acquire)) {
      case LinkState::kAsked: return std::nullopt;
      case LinkState::kAccepted: return transport_.connected(link_);
      case LinkState::kRefused: return Error{Code::kRefused, nessie::kCredentialsDiffer};
      case LinkState::kGone: break;
    }
    return Error{Code::kPeerLost, "the endpoint has closed", nessie::Scope::kPeer, ECONNREFUSED};
  }

 private:
  InprocTransport &transport_;
  std::shared_ptr<Link> link_;
};

std::string fresh_name() { return fmt::format("{}-{:016x}", ::getpid(), nessie::random_u64()); }

}  // namespace

TransportInfo survey(const nessie::Config &) {
  return {"inproc",
          true,
          "endpoints of the same process; bulk data is copied by memcpy",
          {{"messages in place", fmt::format("up to {} bytes", kMaxMessageBytes)},
           {"credits", fmt::format("{} messages each way of a connection", kCredits)}}};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  std::string name;
  if (options.listen) name = options.config.get("nnti.inproc.name").value_or(fresh_name());
  if (has_port(name))
    return Error{
        Code::kInvalidArgument,
        fmt::format("an endpoint of this process is called '{}' already; choose another nnti.inproc.name", name)};
  return std::unique_ptr<Transport>(std::make_unique<InprocTransport>(options, std::move(name)));
}

InprocTransport::InprocTransport(const TransportOptions &options, std::string name)
    : credential_(options.credential),
      events_(options.events),
      name_(std::move(name)),
      port_(std::make_shared<Port>()) {
  if (!name_.empty()) add_port(name_, port_);
}

InprocTransport::~InprocTransport() {
  if (!name_.empty()) remove_port(name_);
  connections_.clear();
  port_->close();
}

Status InprocTransport::can_reach(const nessie::Url &url) const {
  if (has_port(url.address)) return {};
  return Error{Code::kUnsupported, fmt::format("no endpoint of this process is called '{}'", url.address)};
}

Result<std::unique_ptr<Connecting>> InprocTransport::connect(const nessie::Url &url, Deadline) {
  auto link = std::make_shared<Link>();
  link->ports = {port_, find_port(url.address)};
  nessie::random_bytes(link->nonce);
  link->proof = credential_.prove("connect", link->nonce, nessie::Nonce{});
  if (!link->ports[1] || !link->ports[1]->post({Item::Kind::kConnect, link, 1, {}}))
    return Error{Code::kPeerLost, fmt::format("inproc://{} has closed", url.address), nessie::Scope::kPeer,
                 ECONNREFUSED};
  return std::unique_ptr<Connecting>(std::make_unique<InprocConnecting>(*this, std::move(link)));
}

Result<std::unique_ptr<TransportMemory>> InprocTransport::register_memory(const MemoryRegion &region) {
  return std::unique_ptr<TransportMemory>(std::make_unique<InprocMemory>(port_, region));
}

std::optional<MemoryRegion> InprocTransport::find_memory(const RemoteBuffer &buffer) const {
  auto registration = port_->find_registration(buffer.slot);
  if (!registration || registration->key != buffer.key) return std::nullopt;
  return MemoryRegion{registration->bytes, registration->rights, -1};
}

Connection *InprocTransport::add_connection(std::shared_ptr<Link> link, int side) {
  connections_.push_back(std::make_unique<InprocConnection>(*this, std::move(link), side));
  return connections_.back().get();
}

std::size_t InprocTransport::progress() {
  std::size_t events = 0;
  ++depth_;
  Item item;
  for (; events < kEventsPerTurn && take(item); ++events) deliver(item);
  if (--depth_ == 0 && events != 0) reap();
  return events;
}

Connection *InprocTransport::connected(const std::shared_ptr<Link> &link) {
  link->is_awaited = false;
  for (auto &item : std::exchange(link->early, {})) early_.push_back(std::move(item));
  return add_connection(link, 0);
}

bool InprocTransport::take(Item &item) {
  if (early_.empty()) return port_->take(item);
  item = std::move(early_.front());
  early_.pop_front();
  return true;
}

void InprocTransport::deliver(Item &item) {
  if (item.kind == Item::Kind::kConnect) on_connect(item.link);
  auto *connection = item.link->ends[static_cast<std::size_t>(item.to_side)];
  if (connection == nullptr) {
    const bool is_early = item.to_side == 0 && item.link->is_awaited && item.kind != Item::Kind::kAnswer;
    auto &link = *item.link;
    if (is_early) link.early.push_back(std::move(item));
    return;  // otherwise it was closed meanwhile
  }
  if (item.kind == Item::Kind::kMessage) {
    connection->return_credit();
    events_.message(*connection, item.message_kind, item.bytes);
  } else if (item.kind == Item::Kind::kEnd) {
    connection->end();
    events_.lost(*connection, Loss::kGone, {Code::kPeerLost, "the peer closed the connection", nessie::Scope::kPeer});
  }
}

void InprocTransport::on_connect(const std::shared_ptr<Link> &link) {
  bool proved = credential_.check(link->proof, "connect", link->nonce, nessie::Nonce{});
  auto *connection = proved ? add_connection(link, 1) : nullptr;
  auto asked = LinkState::kAsked;
  bool wanted = link->state.compare_exchange_strong(asked, proved ? LinkState::kAccepted : LinkState::kRefused);
  link->ports[0]->post({Item::Kind::kAnswer, link, 0, {}});
  if (connection == nullptr) return;
  if (wanted) return events_.accepted(*connection);
  connection->close();  // the caller gave up meanwhile
}

void InprocTransport::reap() {
  std::erase_if(connections_, [](const auto &connection) { return !connection->open(); });
}

}  // namespace nnti::inproc
