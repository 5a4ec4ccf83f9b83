// SPDX-License-Identifier: BSD-3-Clause
// The processes that share a file, and the order of what they do to it.
#pragma once

#include <base/birth.hpp>
#include <services/staging/client/client.hpp>

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace interpose {

/// A private communicator with the processes of the one that the program passed, so that our messages cannot meet the
/// program's, and the program may free its own. One thread at a time.
class Communicator {
 public:
  /// This process alone.
  Communicator() = default;
  /// Collective over `comm`. MPI_COMM_WORLD is copied once for all files, unless a process of it has
  /// MPI_THREAD_MULTIPLE.
  explicit Communicator(MPI_Comm comm);
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  ~Communicator();

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }
  /// False: in a child of fork(), which must not receive its parent's messages.
  bool was_made_here() const { return birth_.was_here(); }

  /// Before anything is read or written, on all ranks: how many staging servers there are, and what returns when they
  /// have carried out this rank's writes.
  void begin(int servers, std::function<void()> finish_own_writes);

  /// Reductions over all ranks; also points in time that no rank passes before all have come to them, with all their
  /// writes done.
  std::int64_t max(std::int64_t mine);
  template <std::size_t N> std::array<std::int64_t, N> max(std::array<std::int64_t, N> mine);
  /// Begins max() of values that are lent until it is over (wait_patiently); not for points in time. Null: it is, among
  /// one.
  template <std::size_t N> MPI_Request start_max(std::array<std::int64_t, N> &values);
  /// The largest value of all ranks: start_max() of one value, and the wait for it.
  std::int64_t max_now(std::int64_t mine);
  /// What root is answered when it asks, on all ranks. The others wait.
  int from_root(const std::function<int()> &ask);
  /// Root's value, to all.
  template <std::size_t N> void broadcast(std::array<std::int64_t, N> &values);
  void broadcast(std::vector<std::byte> &bytes);

  /// Says that this rank's part of a collective write to variable `varid` is on its way, how many messages it takes
  /// (order().sent), and how many records the file has as far as this rank knows. Does not wait. Every rank says it
  /// after every collective write, also after one of its own that failed.
  void note_written(int varid, std::int64_t records);
  /// Returns when every rank has said it of all collective writes: records() is then the same on all, and what this
  /// rank asks of the servers with order() comes after those writes.
  void await_notes();
  /// The same, if `varid` is among the variables that this rank knows to be written since.
  void await_notes(int varid);
  /// What reads and writes are sent with.
  staging::Order &order() { return order_; }
  /// All writes are done, and the servers forget their number. On all ranks.
  void restart_order();
  /// Says that this rank's part of a collective read of variable `varid` is done. Does not wait. Every rank says it
  /// after every collective read.
  void note_read(int varid);
  /// Returns when every rank's part of all collective reads is done: what was read may be overwritten.
  void wait_until_read();
  /// The same, if `varid` is among the variables that this rank knows to be read since.
  void wait_until_read(int varid);
  /// The most records that any rank told by the last wait for notes.
  std::int64_t records() const { return records_; }

  static constexpr int kAnyVariable = -1;

 private:
  /// A note on its way.
  struct Note {
    std::vector<std::int64_t> values;
    MPI_Request request;
  };
  void take_in(const Note &note);
  void reduce_max(std::int64_t *values, std::size_t count);
  MPI_Request start_max(std::int64_t *values, std::size_t count);
  void broadcast(std::int64_t *values, std::size_t count);
  void broadcast(void *data, int count, MPI_Datatype type);
  void tell(void *data, int count, MPI_Datatype type);

  const nessie::Birth birth_{};
  MPI_Comm comm_ = MPI_COMM_SELF;
  int rank_ = 0, size_ = 1;
  bool owned_ = false, shares_copy_ = false;

  std::deque<Note> notes_;
  MPI_Datatype note_type_ = MPI_DATATYPE_NULL;
  std::vector<int> variables_;
  std::int64_t records_ = 0;
  staging::Order order_;
  std::function<void()> finish_own_writes_;
  std::vector<MPI_Request> reads_;
  std::vector<int> variables_read_;
};

template <std::size_t N> MPI_Request Communicator::start_max(std::array<std::int64_t, N> &values) {
  return start_max(values.data(), N);
}
template <std::size_t N> std::array<std::int64_t, N> Communicator::max(std::array<std::int64_t, N> mine) {
  reduce_max(mine.data(), N);
  return mine;
}

template <std::size_t N> void Communicator::broadcast(std::array<std::int64_t, N> &values) {
  broadcast(values.data(), N);
}

}  // namespace interpose
