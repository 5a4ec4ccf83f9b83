// SPDX-License-Identifier: BSD-3-Clause
// The bulk data of one get or put, on its way in one direction, in chunks.
//
// Design notes. The receiving side chooses a tag that nobody else uses and posts receives straight into the memory
// before the sender is asked to begin: no bulk data ever arrives unexpected. MPI can take a receive back, but not a
// send that has begun. So a flow that is given up before its end goes on in a small way: its sender tells how many
// chunks it began (and begins no more), and its receiver takes what is missing into memory of its own, so that the
// sender's memory gets free and the tag can be used again.
#pragma once

#include "nnti/transports/mpi/requests.hpp"
#include "nnti/transports/mpi/wire.hpp"

#include <array>
#include <optional>
#include <vector>

namespace nnti::mpi {

class Flow;

struct Chunk : Work {
  Chunk() : Work(Kind::kChunk) {}
  Flow *flow = nullptr;
  std::uint64_t size_bytes = 0;
  bool in_use = false;
  bool drains = false;  ///< it goes into memory of the flow's own
};

class Flow {
 public:
  enum class Direction { kIn, kOut };

  /// `rank` and `tag` within `communicator`; `requests` takes what is begun. Stays in place.
  Flow(RequestSet &requests, MPI_Comm communicator, Direction direction, int rank, int tag,
       std::span<std::byte> memory);

  /// Begins as much as may be under way at once.
  void go_on();
  /// Begins no more, takes back what can be taken back.
  void stop();
  /// kIn: the sender began so many chunks in all, and no more will come. False: that cannot be.
  bool conclude(std::uint64_t chunks);
  /// Stops. kIn: if nobody has said how many chunks were begun, nobody will. The tag cannot be used again then.
  void abandon();
  /// Takes back what is left at the very end: nobody drains any more.
  void give_up();
  void on_chunk(Chunk &chunk, const RequestSet::Finished &finished);

  /// MPI may still read or write the memory.
  bool uses_memory() const;
  /// All bytes have been sent, or have arrived.
  bool whole() const { return finished_ == total_; }
  /// Nothing will happen any more.
  bool over() const;
  bool stopped() const { return stopped_; }
  bool concluded() const { return conclusion_.has_value(); }
  std::uint64_t begun() const { return begun_; }
  std::uint64_t total() const { return total_; }
  /// Of MPI, or MPI_SUCCESS.
  int error() const { return error_; }
  Direction direction() const { return direction_; }
  int tag() const { return tag_; }
  bool tag_is_free() const { return !abandoned_; }

  std::uint64_t token = 0;      ///< of the connection whose operation this is
  std::uint64_t operation = 0;  ///< its name
  bool asked_here = false;      ///< by this side
  bool released = false;        ///< the operation has ended: forget the flow when it is over
  bool touched = false;         ///< is in the transport's list

 private:
  static constexpr std::size_t kWindow = 4;  ///< chunks under way at once

  bool begin(Chunk &chunk, std::span<std::byte> bytes);
  void drain();
  bool missing() const { return conclusion_ && finished_ + drained_ < *conclusion_; }

  RequestSet &requests_;
  MPI_Comm communicator_;
  Direction direction_;
  int rank_, tag_;
  std::span<std::byte> memory_;
  std::uint64_t total_;
  std::uint64_t begun_ = 0, finished_ = 0, drained_ = 0;
  std::optional<std::uint64_t> conclusion_;
  std::array<Chunk, kWindow> chunks_;
  std::size_t in_flight_ = 0;
  std::vector<std::byte> drain_;
  bool stopped_ = false, abandoned_ = false;
  int error_ = MPI_SUCCESS;
};

}  // namespace nnti::mpi
