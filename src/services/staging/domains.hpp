// SPDX-License-Identifier: BSD-3-Clause
// How variables are divided among the servers: clients ask by it, and a server knows what it will be asked for.
#pragma once

#include <services/staging/piece.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace staging {

/// Which server owns which part of a variable: contiguous slabs of its first dimension (within each record), so that
/// each server's part is contiguous in the file, and every element has exactly one server, which orders all writes and
/// reads of it. Small variables are one server's as a whole. Pure function of (layout, servers).
class Domains {
 public:
  Domains(const VariableLayout &layout, int servers);
  /// A part of a piece with one owner. Its data lie together in the piece's C-order data, from `offset_bytes` on.
  struct Part {
    int server = 0;
    Piece piece;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
  };
  /// The server that owns all of the variable, if one does.
  std::optional<int> sole_owner() const;
  /// What a server owns of the variable's elements, or of those of each record; empty: nothing.
  Interval part_of(int server) const;
  /// Splits `piece` by owner, in the order of its data.
  std::vector<Part> split(const Piece &piece) const;

 private:
  int owner_of(std::int64_t index) const;
  Part whole(const Piece &piece, int server) const;
  void cut(const Part &from, std::vector<Part> &parts) const;

  VariableLayout layout_;
  int servers_;
  bool split_ = false;  ///< large enough for several servers
  std::size_t slab_dim_ = 0;
  std::int64_t slab_ = 1;  ///< indices of slab_dim_ for each server
};

}  // namespace staging
