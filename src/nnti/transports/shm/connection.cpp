// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/connection.hpp"

#include "nnti/atomics.hpp"
#include "nnti/registration_check.hpp"
#include "nnti/transports/shm/table.hpp"
#include "nnti/transports/shm/transport_impl.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace nnti::shm {
namespace {

constexpr std::size_t kMessagesPerTurn = 64;
constexpr std::size_t kMaxUnsentAnnouncements = 64;  ///< each holds a descriptor
constexpr std::uint32_t kBounceSlot = ~0u;           ///< announces no buffer, but what we relay through

/// Shows the owner, while it lives, that we touch its buffer: it does not let go of the memory meanwhile.
class TransferMark {
 public:
  TransferMark(const Mailbox &outbox, std::uint32_t slot, bool asymmetric_fence) : transfer_(outbox.control->transfer) {
    transfer_.store(slot + 1ull, std::memory_order_relaxed);
    light_fence(asymmetric_fence);
  }
  ~TransferMark() { transfer_.store(0, std::memory_order_release); }
  TransferMark(const TransferMark &) = delete;

 private:
  std::atomic<std::uint64_t> &transfer_;
};

Error garbage(std::string_view what) {
  return {Code::kBadMessage, fmt::format("the peer wrote {} into the shared memory; the connection is given up", what),
          nessie::Scope::kPeer};
}

}  // namespace

ShmConnection::ShmConnection(ShmTransport &transport, bootstrap::PageSocket socket, PeerParts parts)
    : transport_(transport),
      parts_(std::move(parts)),
      out_(outbox()),
      in_(inbox()),
      relay_(*this, transport.table(), out_),
      socket_(std::move(socket)) {}

Transport &ShmConnection::transport() { return transport_; }

std::string ShmConnection::explain() const {
  std::string text = "shm: the peer is on the same node; memory that Nessie allocated is mapped; ";
  if (parts_.cma.ok()) return text + "the application's own is reached by cross-memory attach";
  return text + "the application's own is relayed by its owner, because " + parts_.cma.error().message;
}

// --- messages ---------------------------------------------------------------------------------------------------------

bool ShmConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (!is_open()) return true;
  switch (out_.write(Kind::kMessage, message, kind)) {
    case RingWriter::Outcome::kSent: wake_peer(); return true;
    case RingWriter::Outcome::kNoCredit: return false;
    case RingWriter::Outcome::kBroken: break;
  }
  end_ = garbage("an impossible count of free slots");
  return true;
}

void ShmConnection::wake_peer() {
  light_fence(parts_.asymmetric_fence);
  ring_doorbell();
}

void ShmConnection::ring_doorbell() {
  auto epoch = table().sleep_epoch.load(std::memory_order_relaxed);
  if ((epoch & 1) == 0 || epoch == rung_epoch_) return;
  rung_epoch_ = epoch;
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(parts_.doorbell.get(), &one, sizeof one);
}

std::size_t ShmConnection::progress() {
  std::size_t events = 0;
  while (events < kMessagesPerTurn && is_open() && in_.ready() && deliver_one()) ++events;
  if (is_open() && relay_.busy()) pump_relay();
  if (end_ && is_open() && !in_.ready()) {
    lose(std::move(*end_));
    ++events;
  }
  return events;
}

/// The message is copied first: the peer cannot change it any more, and a nested progress() may go on with the ring.
bool ShmConnection::deliver_one() {
  std::array<std::byte, kMaxInPlaceBytes> buffer;
  auto message = in_.read(buffer);
  if (!message) {
    lose(garbage("what is no message"));
    return false;
  }
  if (in_.give_back()) wake_peer();
  auto bytes = std::span<const std::byte>(buffer).first(message->size_bytes);
  if (message->kind == Kind::kMessage) {
    transport_.events().message(*this, message->message_kind, bytes);
  } else if (!relay_.on_message(message->kind, bytes) && is_open()) {
    lose(garbage("a request that makes no sense"));
    return false;
  }
  return true;
}

void ShmConnection::pump_relay() {
  bool broken = false;
  if (relay_.pump(broken)) wake_peer();
  if (broken) end_ = garbage("an impossible count of free slots");
}

// --- the end ----------------------------------------------------------------------------------------------------------

/// A copy of the descriptor that a forked child holds would keep it in the poller.
void ShmConnection::close_socket() {
  transport_.unwatch(socket_.fd());
  socket_ = bootstrap::PageSocket(Fd());
}

void ShmConnection::lose(Error error) {
  state_ = State::kLost;
  end_.reset();
  close_socket();
  relay_.abandon({Code::kPeerLost, error.message, nessie::Scope::kPeer, error.cause});
  transport_.events().lost(*this, Loss::kGone, error);
}

void ShmConnection::close() {
  if (!is_open()) return;
  state_ = State::kClosed;
  close_socket();
  relay_.abandon({Code::kCancelled, "disconnected"});
}

void ShmConnection::on_fd_ready() {
  socket_ready_ = true;
  transport_.look_at_sockets_soon();
}

std::size_t ShmConnection::look_at_socket() {
  if (!std::exchange(socket_ready_, false)) return 0;
  on_socket();
  return 1;
}

void ShmConnection::on_socket() {
  if (!is_open() || end_) return;
  (void)socket_.flush().ok();
  for (;;) {
    auto page = socket_.receive();
    if (!page.ok()) {
      end_ = page.error();
      transport_.unwatch(socket_.fd());
      return;
    }
    if (!*page) return;
    Announcement announcement;
    if ((*page)->type != bootstrap::PageType::kTransport || (*page)->body.size() != sizeof announcement ||
        (*page)->descriptors.size() != 1) {
      end_ = garbage("a wrong page");
      transport_.unwatch(socket_.fd());
      return;
    }
    std::memcpy(&announcement, (*page)->body.data(), sizeof announcement);
    if (announcement.slot == kBounceSlot) {
      auto bounce = map_shared_memory((*page)->descriptors[0].get(), kBounceBytes, Access::kReadWrite);
      if (bounce.ok()) their_bounce_ = std::move(*bounce);
      continue;
    }
    mappings_.add(table(), announcement.slot, announcement.key, (*page)->descriptors[0].get());
  }
}

bool ShmConnection::peer_is_gone() const {
  char byte;
  auto got = ::recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

// --- bulk data --------------------------------------------------------------------------------------------------------

void ShmConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                        Completion &completion) {
  start({remote, offset, local.size(), local.data(), nullptr, &completion});
}

void ShmConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                        Completion &completion) {
  static constexpr std::byte kNothing{};
  start({remote, offset, local.size(), nullptr, local.empty() ? &kNothing : local.data(), &completion});
}

void ShmConnection::start(const Operation &operation) {
  auto status = transfer_now(operation);
  if (status) return operation.completion->on_complete(std::move(*status));
  relay_.start(operation);
  pump_relay();
}

std::optional<Status> ShmConnection::transfer_now(const Operation &operation) {
  if (!is_open() || end_) return Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer};
  TransferMark mark(outbox(), operation.remote.slot, parts_.asymmetric_fence);
  auto registered = look_up(table(), operation.remote.slot, operation.remote.key);
  if (!registered) return unknown_key();
  auto needed = operation.is_put() ? Rights::kRemoteWrite : Rights::kRemoteRead;
  auto allowed =
      check_access(registered->size_bytes, registered->rights, operation.offset, operation.size_bytes, needed);
  if (!allowed.ok() || operation.size_bytes == 0) return allowed;
  return copy(operation, *registered);
}

std::optional<Status> ShmConnection::copy(const Operation &operation, const Registered &registered) {
  if (const auto *mapping = find_mapping(operation.remote, registered, operation.is_put())) {
    auto *mapped = (*mapping)->base() + operation.offset;
    if (operation.is_put())
      std::memcpy(mapped, operation.source, operation.size_bytes);
    else
      std::memcpy(operation.destination, mapped, operation.size_bytes);
    return Status();
  }
  if (!parts_.cma.ok()) return std::nullopt;
  auto address = registered.address + operation.offset;
  auto status = operation.is_put() ? cma_write(parts_.process, address, {operation.source, operation.size_bytes})
                                   : cma_read(parts_.process, address, {operation.destination, operation.size_bytes});
  if (status.code() != Code::kUnsupported) return status;
  parts_.cma = std::move(status);  // forbidden since the probe
  return std::nullopt;
}

std::optional<Result<std::uint64_t>> ShmConnection::try_atomic(const RemoteBuffer &remote, std::uint64_t offset,
                                                               const AtomicOperation &operation) {
  if (!is_open() || end_) return Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer};
  TransferMark mark(outbox(), remote.slot, parts_.asymmetric_fence);
  auto registered = look_up(table(), remote.slot, remote.key);
  if (!registered) return unknown_key();
  const auto *mapping = find_mapping(remote, *registered, true);
  if (mapping == nullptr) return std::nullopt;
  return execute_atomic({(*mapping)->bytes().first(registered->size_bytes), registered->rights, -1}, offset, operation);
}

/// The announcement was sent before anything that could name the buffer to us: if it is not here yet, it waits in the
/// socket.
const std::shared_ptr<Mapping> *ShmConnection::find_mapping(const RemoteBuffer &remote, const Registered &registered,
                                                            bool to_write) {
  if (!registered.is_shared) return nullptr;
  if (const auto *mapping = mappings_.find(remote.slot, remote.key, registered.size_bytes, to_write)) return mapping;
  on_socket();
  return mappings_.find(remote.slot, remote.key, registered.size_bytes, to_write);
}

/// Also of a peer that is gone, as long as messages of it are delivered.
Result<PeerView> ShmConnection::view(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) {
  if (!is_open()) return Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer};
  auto registered = look_up(table(), remote.slot, remote.key);
  if (!registered) return unknown_key();
  if (auto allowed = check_access(registered->size_bytes, registered->rights, offset, size_bytes, Rights::kRemoteRead);
      !allowed.ok())
    return allowed.error();
  const auto *mapping = find_mapping(remote, *registered, false);
  if (mapping == nullptr) return Connection::view(remote, offset, size_bytes);
  return PeerView({(*mapping)->base() + offset, size_bytes}, *mapping);
}

std::byte *ShmConnection::mine() {
  if (own_bounce_.mapping.valid()) return own_bounce_.mapping.base();
  auto memory = make_shared_memory("nessie-bounce", kBounceBytes, Peers::kMayWrite);
  if (!memory.ok()) return nullptr;
  own_bounce_ = std::move(*memory);
  send_announcement({0, kBounceSlot, 0}, own_bounce_.fd.get());
  return own_bounce_.mapping.base();
}

std::byte *ShmConnection::theirs() {
  if (!their_bounce_.valid()) on_socket();
  return their_bounce_.base();
}

void ShmConnection::send_announcement(const Announcement &announcement, int memfd) {
  socket_.send(bootstrap::PageType::kTransport, std::as_bytes(std::span(&announcement, 1)), std::span(&memfd, 1));
}

void ShmConnection::announce(const RemoteBuffer &buffer, int memfd) {
  if (!is_open() || socket_.unsent() >= kMaxUnsentAnnouncements || !announced_.insert(buffer.key).second) return;
  send_announcement({buffer.key, buffer.slot, 0}, memfd);
}

}  // namespace nnti::shm
