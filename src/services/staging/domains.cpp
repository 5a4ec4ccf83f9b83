// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/domains.hpp>

#include <algorithm>

namespace staging {

namespace {

/// Below this, in bytes (of a record), a variable is not worth splitting.
constexpr std::int64_t kSmallExtentBytes = 256 << 10;

}  // namespace

Domains::Domains(const VariableLayout &layout, int servers) : layout_(layout), servers_(std::max(1, servers)) {
  slab_dim_ = layout.is_record ? 1 : 0;
  if (servers_ == 1 || layout.shape.size() <= slab_dim_) return;
  split_ = layout.extent_elements() * layout.element_bytes >= kSmallExtentBytes;
  slab_ = std::max<std::int64_t>(1, (layout.shape[slab_dim_] + servers_ - 1) / servers_);
}

std::optional<int> Domains::sole_owner() const {
  if (split_) return std::nullopt;
  return layout_.varid % servers_;
}

Interval Domains::part_of(int server) const {
  const auto extent = layout_.extent_elements();
  if (const auto owner = sole_owner()) return {0, *owner == server ? extent : 0};
  const auto length = layout_.shape[slab_dim_], row = layout_.elements_below(slab_dim_);
  const auto begin = std::min(length, slab_ * server), end = std::min(length, begin + slab_);
  return {begin * row, end * row};
}

int Domains::owner_of(std::int64_t index) const {
  return static_cast<int>(std::min<std::int64_t>(servers_ - 1, index / slab_));
}

Domains::Part Domains::whole(const Piece &piece, int server) const {
  return {server, piece, 0, static_cast<std::size_t>(piece.elements() * layout_.element_bytes)};
}

// In a record variable a server's part of several records would lie scattered in the data: the records are cut apart
// first.
std::vector<Domains::Part> Domains::split(const Piece &piece) const {
  std::vector<Part> parts;
  if (piece.elements() == 0) return parts;
  if (const auto owner = sole_owner()) return {whole(piece, *owner)};
  const auto first = piece.start[slab_dim_], last = first + (piece.count[slab_dim_] - 1) * piece.step(slab_dim_);
  if (owner_of(first) == owner_of(last)) return {whole(piece, owner_of(first))};
  if (slab_dim_ == 0) {
    cut(whole(piece, 0), parts);
    return parts;
  }
  for (std::int64_t r = 0; r < piece.count[0]; ++r) {
    Part record = whole(piece, 0);
    record.piece.start[0] += r * piece.step(0);
    record.piece.count[0] = 1;
    record.size_bytes /= static_cast<std::size_t>(piece.count[0]);
    record.offset_bytes = static_cast<std::size_t>(r) * record.size_bytes;
    cut(record, parts);
  }
  return parts;
}

/// Cuts a part along slab_dim_, before which nothing has more than one index.
void Domains::cut(const Part &from, std::vector<Part> &parts) const {
  const auto start = from.piece.start[slab_dim_], count = from.piece.count[slab_dim_],
             stride = from.piece.step(slab_dim_);
  const auto row_bytes = from.size_bytes / static_cast<std::size_t>(count);
  for (std::int64_t at = 0; at < count;) {
    Part part = from;
    const auto first = start + at * stride;
    part.server = owner_of(first);
    const auto last = part.server == servers_ - 1 ? INT64_MAX : (part.server + 1) * slab_ - 1;  // of the owner's slab
    const auto rows = std::min(count - at - 1, (last - first) / stride) + 1;
    part.piece.start[slab_dim_] = first;
    part.piece.count[slab_dim_] = rows;
    part.offset_bytes = from.offset_bytes + static_cast<std::size_t>(at) * row_bytes;
    part.size_bytes = static_cast<std::size_t>(rows) * row_bytes;
    parts.push_back(std::move(part));
    at += rows;
  }
}

}  // namespace staging
