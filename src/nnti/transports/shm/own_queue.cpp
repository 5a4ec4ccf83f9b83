// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/own_queue.hpp"

#include "nnti/transports/shm/connection.hpp"

#include <array>

namespace nnti::shm {

Result<std::unique_ptr<OwnQueue>> OwnQueue::make(std::uint64_t entries, EndpointTable &own_table, bool touch) {
  auto memory = make_shared_memory("nessie-queue", queue_bytes(entries), Peers::kMayWrite);
  if (!memory.ok()) return memory.error();
  if (touch) touch_pages(memory->mapping);
  auto queue = queue_at(memory->mapping.base(), entries, own_table);
  queue.consumed->store(0, std::memory_order_relaxed);
  queue.bound->store(entries / 2, std::memory_order_release);
  return std::unique_ptr<OwnQueue>(new OwnQueue(std::move(*memory), queue));
}

bool OwnQueue::can_skip(const Seats &seats, std::uint32_t seat) const {
  if (seats.is_gone(seat) || !seats.is_known(seat)) return true;
  const auto *writer = seats.occupant(seat);
  return writer != nullptr && writer->peer_has_ended();
}

bool OwnQueue::ready(const Seats &seats) const {
  if (broken_) return false;
  if (owes_entries()) return true;
  auto head = reader_.look();
  return head.look != QueueReader::Look::kEmpty &&
         (head.look != QueueReader::Look::kClaimed || can_skip(seats, head.seat));
}

std::size_t OwnQueue::progress(const Seats &seats, Receiver &receiver) {
  std::size_t delivered = 0;
  auto last = Step::kSkipped;
  while (delivered < kMessagesPerTurn && !broken_ && last != Step::kNothing) {
    last = step(seats, receiver);
    delivered += last == Step::kDelivered;
  }
  // Who starves gets what there is as soon as nothing else is to be done, or it is worth the look at everybody's line.
  const auto owed = reader_.next() - given_back_;
  if (!broken_ && owes_entries() && (last == Step::kNothing || owed >= queue_.entries / 16)) give_back(seats);
  return delivered;
}

OwnQueue::Step OwnQueue::step(const Seats &seats, Receiver &receiver) {
  auto head = reader_.look();
  switch (head.look) {
    case QueueReader::Look::kEmpty: return Step::kNothing;
    case QueueReader::Look::kBroken: break;
    case QueueReader::Look::kClaimed:
      if (!seats.is_known(head.seat)) break;
      if (!can_skip(seats, head.seat)) return Step::kNothing;
      reader_.skip();
      return Step::kSkipped;
    case QueueReader::Look::kPublished:
      if (!seats.is_known(head.seat)) break;
      return take(seats, receiver, head.seat);
  }
  broken_ = true;
  return Step::kNothing;
}

/// What comes from a connection that was given up here is read and forgotten. The message is copied first, and its
/// entry done with: a nested progress() may go on with the queue.
OwnQueue::Step OwnQueue::take(const Seats &seats, Receiver &receiver, std::uint32_t seat) {
  std::array<std::byte, kMaxInPlaceBytes> buffer;
  auto message = reader_.read(buffer);
  if (!message) reader_.skip();
  if (reader_.next() - given_back_ >= queue_.entries / 4) give_back(seats);
  auto *sender = seats.occupant(seat);
  if (sender == nullptr || !sender->is_open()) return Step::kSkipped;
  count_sender(*sender);
  if (message)
    receiver.deliver(*sender, *message, std::span<const std::byte>(buffer).first(message->size_bytes));
  else
    receiver.reject(*sender);
  return Step::kDelivered;
}

// --- fairness ---------------------------------------------------------------------------------------------------------

void OwnQueue::count_sender(ShmConnection &sender) {
  if (sender.last_spell == spell_) return;
  sender.last_spell = spell_;
  ++senders_;
}

/// Entries that we keep although somebody waits for them.
bool OwnQueue::owes_entries() const {
  return reader_.next() != given_back_ &&
         (starving_ != 0 || queue_.control->starving.load(std::memory_order_relaxed) != 0);
}

/// As long as nobody starves, senders get more and more. Once somebody does, all who were active get equal parts of
/// half the queue: the others drain to that, and there is room for the one that starves, however late it is to take it.
/// That lasts until nobody starves.
void OwnQueue::give_back(const Seats &seats) {
  given_back_ = reader_.next();
  queue_.consumed->store(given_back_, std::memory_order_seq_cst);
  bool asked = queue_.control->starving.exchange(0, std::memory_order_seq_cst) != 0;
  starving_ = asked || starving_ != 0 ? wake_the_starving(seats) : 0;
  const auto half = queue_.entries / 2;
  auto bound = starving_ == 0 ? std::min(half, 2 * queue_.bound->load(std::memory_order_relaxed))
                              : std::max<std::uint64_t>(half / (senders_ + starving_), 1);
  queue_.bound->store(bound, std::memory_order_relaxed);
  senders_ = 0;
  ++spell_;
}

std::uint64_t OwnQueue::wake_the_starving(const Seats &seats) {
  std::uint64_t count = 0;
  for (std::uint32_t seat = 0; seat < seats.size(); ++seat) {
    auto *sender = seats.occupant(seat);
    if (sender == nullptr || !sender->peer_starves()) continue;
    ++count;
    sender->wake_peer();
  }
  return count;
}

}  // namespace nnti::shm
