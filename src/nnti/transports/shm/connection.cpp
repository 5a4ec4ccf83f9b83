// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/connection.hpp"

#include "nnti/transport/atomics.hpp"
#include "nnti/transport/registration_check.hpp"

#include <nessie/copy.hpp>

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace nnti::shm {
namespace {

constexpr std::size_t kMaxUnsentAnnouncements = 64;  ///< each holds a descriptor

/// Shows the owner, while it lives, that we touch its buffer: it does not let go of the memory meanwhile. Both fence: a
/// transfer takes far longer than a fence, and whoever unregisters need not interrupt the processors of all peers.
class TransferMark {
 public:
  TransferMark(std::atomic<std::uint64_t> &word, std::uint64_t mark) : word_(word) {
    word_.store(mark, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  ~TransferMark() { word_.store(0, std::memory_order_release); }
  TransferMark(const TransferMark &) = delete;

 private:
  std::atomic<std::uint64_t> &word_;
};

Error garbage(std::string_view what) {
  return {Code::kBadMessage, fmt::format("the peer wrote {} into the shared memory; the connection is given up", what),
          nessie::Scope::kPeer};
}

}  // namespace

ShmConnection::ShmConnection(Host &transport, bootstrap::PageSocket socket, PeerParts parts)
    : transport_(transport), parts_(std::move(parts)), relay_(*this, transport.table()), socket_(std::move(socket)) {}

ShmConnection::~ShmConnection() { transport_.forget_ring(parts_.doorbell.get()); }

void ShmConnection::begin() {
  if (!parts_.accepted) {
    const auto queue = uses_queue() ? transport_.queue_memory() : Host::QueueMemory{-1, 0};
    send_announcement({queue.entries, uses_queue() ? kQueueSlot : kSeatSlot, parts_.own_seat}, queue.fd);
  }
  if (transport_.sets_up_in_advance()) open_channel();
}

ConnectionLine &ShmConnection::own_line() const { return transport_.own_table().lines[parts_.own_seat]; }

std::string ShmConnection::explain() const {
  std::string text = fmt::format("shm: the peer is on the same node; messages go through {}; ",
                                 uses_queue() ? "a queue that the receiver's peers share" : "a mailbox");
  text += "memory that Nessie allocated is mapped; ";
  if (parts_.cma.ok()) return text + "the application's own is reached by cross-memory attach";
  return text + "the application's own is relayed by its owner, because " + parts_.cma.error().message;
}

// --- channels ---------------------------------------------------------------------------------------------------------

/// Until the peer has said which line of its table is ours, nothing can be sent to it. It says so before it sends
/// anything: who answers finds it in the socket.
bool ShmConnection::open_channel() {
  if (!knows_seat()) on_socket();
  if (!is_open() || end_ || !knows_seat()) return false;
  if (out_.index() != 0) return true;
  if (!uses_queue()) return open_mailbox();
  out_.emplace<QueueWriter>(queue_at(parts_.queue.base(), parts_.queue_entries, table()), parts_.their_seat,
                            &own_line().starves);
  return true;
}

/// Nothing is sent before the descriptor has left: if we end then, it waits for the peer in the socket.
bool ShmConnection::open_mailbox() {
  if (!out_ring_.valid()) {
    auto memory = make_shared_memory("nessie-mailbox", ring_bytes(parts_.slots), Peers::kMayOnlyRead);
    if (!memory.ok()) {
      end(memory.error());
      return false;
    }
    out_ring_ = std::move(memory->mapping);
    if (transport_.sets_up_in_advance()) touch_pages(out_ring_);
    send_announcement({0, kMailboxSlot, 0}, memory->fd.get());
  }
  if (socket_.has_unsent()) return false;
  out_.emplace<RingWriter>(
      Mailbox{&their_line().consumed, &own_line().starves, reinterpret_cast<Slot *>(out_ring_.base()), parts_.slots});
  return true;
}

bool ShmConnection::take_memory(const Announcement &announcement, std::vector<nessie::Fd> &descriptors) {
  if (descriptors.size() > 1) return false;
  if (announcement.slot == kGivenSlot) {
    given_.add(announcement.key, descriptors.empty() ? nessie::Fd() : std::move(descriptors[0]));
    return true;
  }
  const int memfd = descriptors.empty() ? -1 : descriptors[0].get();  // one side may have had none left
  if (announcement.slot == kBounceSlot) {
    auto bounce = map_shared_memory(memfd, kBounceBytes, Access::kReadWrite);
    if (bounce.ok()) their_bounce_ = std::move(*bounce);
    return true;
  }
  if (announcement.slot != kMailboxSlot) {
    mappings_.add(table(), announcement.slot, announcement.key, memfd);
    return true;
  }
  if (uses_queue() || in_ || !knows_seat()) return false;
  if (memfd < 0) return end(bootstrap::no_descriptors()), true;
  auto ring = map_shared_memory(memfd, ring_bytes(parts_.slots), Access::kRead);
  if (!ring.ok()) return false;
  in_ring_ = std::move(*ring);
  in_.emplace(
      Mailbox{&own_line().consumed, &their_line().starves, reinterpret_cast<Slot *>(in_ring_.base()), parts_.slots});
  ask_attention();
  return true;
}

/// The connecting side's seat, and its queue: it is ready to receive.
bool ShmConnection::take_seat(const Announcement &announcement, const std::vector<nessie::Fd> &descriptors) {
  const bool with_queue = announcement.slot == kQueueSlot;
  if (knows_seat() || announcement.number >= kSeats || with_queue != uses_queue() || descriptors.size() != with_queue)
    return false;
  if (with_queue && !descriptors[0]) return end(bootstrap::no_descriptors()), true;
  if (with_queue) {
    auto queue = map_queue(descriptors[0].get(), announcement.key);
    if (!queue.ok()) return false;
    parts_.queue = std::move(*queue);
    parts_.queue_entries = announcement.key;
  }
  parts_.their_seat = announcement.number;
  if (transport_.sets_up_in_advance()) open_channel();
  return true;
}

// --- messages ---------------------------------------------------------------------------------------------------------

bool ShmConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (!is_open()) return true;
  unanswered_ -= unanswered_ != 0 ? 1 : 0;
  if (auto *ring = std::get_if<RingWriter>(&out_); ring != nullptr && ring->try_write(message, kind)) [[likely]] {
    wake_peer();
    return true;
  }
  switch (write(Kind::kMessage, message, kind)) {
    case Outcome::kSent: wake_peer(); return true;
    case Outcome::kNoCredit: return false;
    case Outcome::kBroken: break;
  }
  end(garbage("an impossible count of what it has read"));
  return true;
}

Outcome ShmConnection::write(Kind kind, std::span<const std::byte> message, MessageKind message_kind) {
  auto outcome = Outcome::kNoCredit;
  if (auto *ring = std::get_if<RingWriter>(&out_)) [[likely]]
    outcome = ring->write(kind, message, message_kind);
  else if (auto *queue = std::get_if<QueueWriter>(&out_))
    outcome = queue->write(kind, message, message_kind);
  else
    return open_channel() ? write(kind, message, message_kind) : outcome;
  if (outcome == Outcome::kNoCredit) {
    ask_attention();
    wake_peer();  // a queue's reader may sleep on entries that it has read, and not given back yet
  }
  return outcome;
}

bool ShmConnection::writer_starves() const {
  if (const auto *ring = std::get_if<RingWriter>(&out_)) return ring->starves();
  const auto *queue = std::get_if<QueueWriter>(&out_);
  return queue != nullptr && queue->starves();
}

bool ShmConnection::has_new_credit() const {
  if (const auto *ring = std::get_if<RingWriter>(&out_)) return ring->has_new_credit();
  const auto *queue = std::get_if<QueueWriter>(&out_);
  return queue != nullptr && queue->has_new_credit();
}

void ShmConnection::wake_peer() {
  nessie::light_fence(parts_.asymmetric_fence);
  ring_doorbell();
}

void ShmConnection::ring_doorbell() {
  auto epoch = table().sleep_epoch.load(std::memory_order_relaxed);
  if ((epoch & kSleepsOften) != 0) [[unlikely]] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    epoch = table().sleep_epoch.load(std::memory_order_relaxed);
  }
  if ((epoch & 1) == 0 || epoch == rung_epoch_) return;
  rung_epoch_ = epoch;
  const bool has_to_answer = unanswered_ > 0 && came_at_ == transport_.turn();
  const bool more_follows = has_to_answer || (in_ && in_->ready() && transport_.is_delivering());
  if (!more_follows || !transport_.hold_ring(parts_.doorbell.get())) ring(parts_.doorbell.get());
}

std::size_t ShmConnection::progress() {
  std::size_t events = 0;
  while (events < kMessagesPerTurn && is_open() && in_ && in_->ready() && deliver_one()) ++events;
  if (is_open() && relay_.busy()) pump_relay();
  if (end_ && is_open() && is_drained()) {
    lose(std::move(*end_));
    ++events;
  }
  return events;
}

/// It waits perhaps before we have seen where it says that it does: it told us so in the socket before it sent
/// anything.
bool ShmConnection::peer_starves() {
  if (!uses_queue() || !is_open()) return false;
  if (!knows_seat()) on_socket();
  return knows_seat() && their_line().starves.load(std::memory_order_seq_cst) != 0;
}

/// The message is copied first: the peer cannot change it any more, and a nested progress() may go on with the ring.
bool ShmConnection::deliver_one() {
  std::array<std::byte, kMaxInPlaceBytes> buffer;
  auto message = in_->read(buffer);
  if (!message) {
    reject();
    return false;
  }
  if (in_->give_back()) wake_peer();
  deliver(*message, std::span<const std::byte>(buffer).first(message->size_bytes));
  return is_open();
}

void ShmConnection::deliver(const Message &message, std::span<const std::byte> bytes) {
  if (std::exchange(came_at_, transport_.turn()) != transport_.turn()) unanswered_ = 0;
  ++unanswered_;
  if (message.kind == Kind::kMessage) return transport_.events().message(*this, message.message_kind, bytes);
  if (!relay_.on_message(message.kind, bytes) && is_open()) return lose(garbage("a request that makes no sense"));
  if (is_open() && relay_.busy()) ask_attention();
}

void ShmConnection::reject() { lose(garbage("what is no message")); }

void ShmConnection::pump_relay() {
  bool broken = false;
  if (relay_.pump(broken)) wake_peer();
  if (broken) end(garbage("an impossible count of what it has read"));
}

// --- the end ----------------------------------------------------------------------------------------------------------

/// The last event, when what the peer has sent is delivered.
void ShmConnection::end(Error error) {
  if (!is_open() || end_) return;
  end_ = std::make_unique<Error>(std::move(error));
  drain_to_ = uses_queue() && peer_ended_ ? transport_.queue_end_of(parts_.own_seat) : 0;
  transport_.unwatch(socket_.fd());
  ask_attention();
}

void ShmConnection::give_up(Error error) {
  end(std::move(error));
  drain_to_ = 0;
}

bool ShmConnection::is_drained() const {
  return uses_queue() ? transport_.queue_read() >= drain_to_ : !in_ || !in_->ready();
}

void ShmConnection::lose(Error error) {
  state_ = State::kLost;
  end_.reset();
  leave();
  relay_.abandon({Code::kPeerLost, error.message, nessie::Scope::kPeer, error.cause});
  transport_.events().lost(*this, Loss::kGone, error);
}

void ShmConnection::close() {
  if (!is_open()) return;
  state_ = State::kClosed;
  leave();
  relay_.abandon({Code::kCancelled, "disconnected"});
}

void ShmConnection::leave() {
  if (peer_ended_)
    transport_.empty_seat(parts_.own_seat, drain_to_);
  else
    transport_.leave_seat(parts_.own_seat, socket_.take());
  socket_ = bootstrap::PageSocket(nessie::Fd());
  ask_attention();  // which then forgets it
}

void ShmConnection::on_socket() {
  if (!is_open() || end_) return;
  const bool had_unsent = socket_.has_unsent();
  (void)socket_.flush().ok();
  if (had_unsent && !socket_.has_unsent()) transport_.watch(socket_.fd(), parts_.own_seat, false);
  while (!end_) {
    auto page = socket_.receive();
    if (!page.ok()) {
      peer_ended_ = page.code() == Code::kPeerLost;
      return end(page.error());
    }
    if (!*page) return;
    on_page(**page);
  }
}

void ShmConnection::on_page(bootstrap::Page &page) {
  Announcement announcement;
  if (page.type != bootstrap::PageType::kTransport || page.body.size() != sizeof announcement)
    return end(garbage("a wrong page"));
  std::memcpy(&announcement, page.body.data(), sizeof announcement);
  const bool tells_seat = announcement.slot == kSeatSlot || announcement.slot == kQueueSlot;
  const bool taken =
      tells_seat ? take_seat(announcement, page.descriptors) : take_memory(announcement, page.descriptors);
  if (!taken) end(garbage("a page that makes no sense"));
}

bool ShmConnection::peer_is_gone() const {
  char byte;
  auto got = ::recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

bool ShmConnection::peer_transfers(std::uint32_t slot) const {
  return table().transfer.load(std::memory_order_seq_cst) == transfer_mark(transport_.owner_id(), slot);
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
  ask_attention();
  pump_relay();
}

std::optional<Status> ShmConnection::transfer_now(const Operation &operation) {
  if (!is_open() || end_) return Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer};
  TransferMark mark(transport_.own_table().transfer, transfer_mark(parts_.owner, operation.remote.slot));
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
      nessie::copy_bytes(mapped, operation.source, operation.size_bytes);
    else
      nessie::copy_bytes(operation.destination, mapped, operation.size_bytes);
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
  TransferMark mark(transport_.own_table().transfer, transfer_mark(parts_.owner, remote.slot));
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
  auto descriptors = std::span<const int>(&memfd, memfd < 0 ? 0 : 1);
  socket_.send(bootstrap::PageType::kTransport, std::as_bytes(std::span(&announcement, 1)), descriptors);
  if (socket_.has_unsent()) transport_.watch(socket_.fd(), parts_.own_seat, true);
}

Status ShmConnection::give_descriptor(std::uint64_t key, int descriptor) {
  if (!is_open() || end_) return Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer};
  if (socket_.unsent() >= kMaxUnsentAnnouncements)
    return Error{Code::kBusy, "too many descriptors wait for the peer to take them"};
  send_announcement({key, kGivenSlot, 0}, descriptor);
  return {};
}

/// It was sent before the message that speaks of it: if it is not here yet, it waits in the socket.
Result<int> ShmConnection::take_descriptor(std::uint64_t key) {
  auto taken = given_.take(key);
  if (taken.ok() || taken.code() != Code::kNotFound) return taken;
  on_socket();
  return given_.take(key);
}

Result<pid_t> ShmConnection::process() const {
  if (parts_.process > 0) return parts_.process;
  return Error{Code::kUnsupported, "the peer lives in a pid namespace that cannot be seen from here"};
}

void ShmConnection::announce(const RemoteBuffer &buffer, int memfd) {
  if (!is_open() || socket_.unsent() >= kMaxUnsentAnnouncements || !announced_.insert(buffer.key).second) return;
  send_announcement({buffer.key, buffer.slot, 0}, memfd);
}

}  // namespace nnti::shm
