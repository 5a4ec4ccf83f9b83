// SPDX-License-Identifier: BSD-3-Clause
// The queue through which an endpoint receives from all its peers, and what keeps them from locking each other out.
#pragma once

#include "nnti/transport/allocation.hpp"
#include "nnti/transports/shm/seats.hpp"
#include "nnti/transports/shm/shared_queue.hpp"

namespace nnti::shm {

class OwnQueue {
 public:
  /// What becomes of the queue's messages.
  class Receiver {
   public:
    virtual void deliver(ShmConnection &from, const Message &message, std::span<const std::byte> bytes) = 0;
    /// An entry of `from` is no message.
    virtual void reject(ShmConnection &from) = 0;

   protected:
    ~Receiver() = default;
  };

  /// `touch`: its memory is there from the beginning, not from its first use on. kNoMemory.
  static Result<std::unique_ptr<OwnQueue>> make(std::uint64_t entries, EndpointTable &own_table, bool touch);
  int fd() const { return memory_.fd.get(); }
  std::uint64_t entries() const { return queue_.entries; }

  /// Whether progress() has something to do.
  bool ready(const Seats &seats) const;
  /// Delivers, and gives entries back. Callbacks may call it again.
  std::size_t progress(const Seats &seats, Receiver &receiver);
  /// Nothing in it can be trusted any more, and nothing will be read from it.
  bool is_broken() const { return broken_; }
  std::uint64_t next() const { return reader_.next(); }
  std::uint64_t end_of(std::uint32_t seat) const { return reader_.end_of(seat); }

 private:
  OwnQueue(SharedMemory memory, const Queue &queue) : memory_(std::move(memory)), queue_(queue), reader_(queue) {}
  enum class Step { kNothing, kSkipped, kDelivered };
  Step step(const Seats &seats, Receiver &receiver);
  Step take(const Seats &seats, Receiver &receiver, std::uint32_t seat);
  bool can_skip(const Seats &seats, std::uint32_t seat) const;
  void count_sender(ShmConnection &sender);
  bool owes_entries() const;
  void give_back(const Seats &seats);
  std::uint64_t wake_the_starving(const Seats &seats);

  SharedMemory memory_;
  Queue queue_;
  QueueReader reader_;
  std::uint64_t given_back_ = 0;
  std::uint64_t starving_ = 0;  ///< senders, when we last looked
  std::uint64_t senders_ = 0,
                spell_ = 1;  ///< how many have sent since entries were last given back; which time that is
  bool broken_ = false;
};

}  // namespace nnti::shm
