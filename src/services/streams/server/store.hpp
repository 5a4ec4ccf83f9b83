// SPDX-License-Identifier: BSD-3-Clause
// What writers have put, and where it is: in a client's memory that this server maps, in memory of its own, or in the
// log. Memory is bounded: what is too much goes to the log, the oldest first.
#pragma once

#include <base/budget.hpp>
#include <nssi/nssi.hpp>
#include <service/log/log.hpp>
#include <service/wait_queue.hpp>
#include <services/streams/server/pieces.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace streams {

using nessie::Budget;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Status;

class Store;

/// There is no room in the log now.
inline bool is_full(const Status &status) { return status.code() == Code::kIo && status.error().cause == ENOSPC; }

/// What chunks that belong together take.
struct Tally {
  std::uint64_t memory_bytes = 0, log_bytes = 0;
};

/// The data of one write. Given back when nobody has it any more.
class Chunk : public std::enable_shared_from_this<Chunk> {
 public:
  Chunk(Store &store, HeldBytes held, std::shared_ptr<Tally> tally);
  /// Found in the log.
  Chunk(Store &store, std::uint64_t size_bytes, std::vector<LoggedPiece> logged, std::shared_ptr<Tally> tally);
  ~Chunk();
  Chunk(const Chunk &) = delete;
  std::uint64_t size_bytes() const { return size_bytes_; }
  bool is_in_memory() const { return held_.keep != nullptr; }
  const std::vector<LoggedPiece> &logged() const { return logged_; }

 private:
  friend class Store;
  void free_memory();
  void note_logged(std::vector<LoggedPiece> logged);
  Store &store_;
  const std::shared_ptr<Tally> tally_;
  const std::uint64_t size_bytes_;
  HeldBytes held_;  ///< nothing: it is in the log only
  std::vector<LoggedPiece> logged_;
  std::chrono::steady_clock::time_point since_{};
  std::list<Chunk *>::iterator at_;  ///< among those in memory
  bool is_listed_ = false, is_moving_ = false;
};

/// Memory that is kept free for a step; given back when it goes. Not to outlive the store.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Store &store, std::uint64_t size_bytes);
  Reservation(Reservation &&other) noexcept : store_(std::exchange(other.store_, nullptr)), bytes_(other.bytes_) {}
  Reservation &operator=(Reservation &&other) noexcept {
    std::swap(store_, other.store_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation();
  explicit operator bool() const { return store_ != nullptr; }

 private:
  Store *store_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// How long buffers were in each of DART's queues (CUG 2007), all together: a writer's in the *empty* queue until there
/// was room for its data, in the *pending* one until they were here, in the *full* one until nobody needed them in
/// memory.
struct QueueTimes {
  std::uint64_t count = 0;
  double empty_s = 0, pending_s = 0, full_s = 0;
};

/// All of it on the thread that drives; what waits suspends its fiber.
class Store {
 public:
  Store(nssi::Runtime &runtime, Budget &budget, std::uint64_t memory_bytes);
  ~Store();
  Store(const Store &) = delete;

  /// What does not fit into memory goes there, `log_bytes` at most; null: nothing does, nor is anything released there.
  void use_log(nessie::service::Log *log, std::uint64_t log_bytes) {
    log_ = log;
    log_limit_ = log_bytes;
  }
  std::uint64_t limit_bytes() const { return limit_; }
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t high_bytes() const { return high_; }
  std::uint64_t logged_bytes() const { return logged_bytes_; }
  const QueueTimes &times() const { return times_; }
  /// A write has waited so long for room, and then for its data.
  void note_times(std::chrono::steady_clock::duration empty, std::chrono::steady_clock::duration pending);
  bool has_room(std::uint64_t size_bytes) const { return used_ == 0 || used_ + size_bytes <= limit_; }
  /// Whether there is room besides what is kept free for others.
  bool has_spare_room(std::uint64_t size_bytes) const { return has_room(reserved_ + size_bytes); }
  /// Whether what is in memory can go to the log.
  bool can_spill() const { return log_has_room(log_ != nullptr ? log_->most_bulk_bytes() : 0); }
  /// Makes room, or waits for it, until `may_go_on()` says so: asked again whenever there is more room. kTimedOut: not
  /// by the deadline. Otherwise as nssi::Request::check().
  Status await_room(nssi::Request &request, std::uint64_t size_bytes, Deadline deadline,
                    const std::function<bool()> &may_go_on);
  /// Somebody waits for room, or there may be more of it.
  void notify() { changed_.notify_all(); }

  std::shared_ptr<Chunk> keep(HeldBytes held, const std::shared_ptr<Tally> &tally);
  /// What is in the log already; of no bytes: a record, which is released with the last share of it.
  std::shared_ptr<Chunk> find_logged(std::uint64_t size_bytes, std::vector<LoggedPiece> logged,
                                     const std::shared_ptr<Tally> &tally);
  /// Bytes [first, first + size_bytes) of the chunk, read from the log if they are there only. kIo, kBadMessage: they
  /// cannot be, and what is damaged.
  Result<HeldBytes> bytes_of(const Chunk &chunk, std::uint64_t first, std::uint64_t size_bytes);
  /// Has the chunk in the log, too. Its data are written, not synced. kIo, with ENOSPC as the cause: there is no room
  /// for it now; nothing has changed.
  Status write_to_log(Chunk &chunk);
  /// Why the log takes nothing now, for people: its disk is full, or has an error. Empty: it does, or there is none.
  std::string log_trouble() const;

 private:
  friend class Chunk;
  friend class Reservation;
  bool log_has_room(std::uint64_t size_bytes) const;
  void begin_spilling();
  void spill();
  Chunk *oldest();
  void list(Chunk &chunk);

  nssi::Runtime &runtime_;
  const std::uint64_t limit_;
  nessie::service::Log *log_ = nullptr;
  std::uint64_t log_limit_ = 0;
  Budget::Account account_;
  nessie::service::WaitQueue changed_;
  std::list<Chunk *> in_memory_;  ///< the oldest first
  std::uint64_t used_ = 0, high_ = 0, wanted_ = 0, logged_bytes_ = 0, reserved_ = 0;
  QueueTimes times_;
  bool is_spilling_ = false;
  std::string warned_;  ///< of the log
};

}  // namespace streams
