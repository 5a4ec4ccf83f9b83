// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking reads and writes between their posting and their completion.
#pragma once

#include <interpose/pnetcdf/engine/packing.hpp>
#include <services/staging/client/client.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace interpose {

/// What an access selects, with nothing implied any more.
struct Region {
  /// Adds a piece, unless it is empty.
  void add(const staging::VariableLayout &layout, const staging::Piece &piece);

  staging::PieceList pieces;
  staging::Interval bounds;      ///< of their elements
  bool is_ascending = true;      ///< each piece begins behind the end of the one before
  std::int64_t last_record = 0;  ///< number of records that a write needs; 0 for fixed-size variables
  std::int64_t elements() const { return pieces.elements(); }
};

/// A posted read or write: where in the variable, and its external data.
struct Request {
  int id = -1;
  const Variable *variable = nullptr;
  Region region;
  MemoryLayout layout;            ///< where a read is delivered
  std::span<std::byte> external;  ///< all pieces, one after the other
  Buffer own;                     ///< holds `external`, unless the program's memory or the attached buffer does
  int attached_slot = -1;         ///< in the attached buffer, for bput
  bool refused = false;           ///< named in a wait that failed; later waits do not find its id any more
};

/// The memory that the program lends for bput (ncmpi_buffer_attach), handed out and taken back as native PnetCDF does:
/// from the front, and back only from the end.
class AttachedBuffer {
 public:
  explicit AttachedBuffer(std::int64_t size_bytes) : size_(size_bytes), memory_(static_cast<std::size_t>(size_bytes)) {}
  std::int64_t size() const { return size_; }
  std::int64_t used() const { return used_; }
  /// The slot, or -1 if it does not fit.
  int take(std::int64_t size_bytes, std::span<std::byte> &bytes);
  void release(int slot);
  void reclaim();
  void clear();

 private:
  struct Slot {
    std::int64_t size;
    bool used;
  };
  std::int64_t size_, used_ = 0;
  Buffer memory_;
  std::vector<Slot> slots_;
};

/// Pending requests of one direction, in the order of their posting. Ids as native PnetCDF gives them: even for writes,
/// odd for reads, from the beginning whenever nothing is pending.
class Queue {
 public:
  explicit Queue(int first_id) : first_id_(first_id) {}
  int add(Request request);
  /// What was taken and stays pending after all, under its id.
  void put_back(Request request) { pending_.insert_or_assign(request.id, std::move(request)); }
  int size() const { return static_cast<int>(pending_.size()); }
  /// nullptr if there is none with this id.
  Request *find(int id);
  /// The request with this id, which must be there, pending no more.
  Request take(int id);
  /// All of them.
  std::vector<Request> take_all();
  /// Whether one of them uses the attached buffer.
  bool uses_attached_buffer() const;

 private:
  int first_id_, newest_id_ = 0;
  std::map<int, Request> pending_;
};

struct Requests {
  Queue puts{0}, gets{1};
  Queue &of(int id) { return id % 2 == 0 ? puts : gets; }
  int size() const { return puts.size() + gets.size(); }
};

}  // namespace interpose
