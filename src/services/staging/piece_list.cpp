// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/piece_list.hpp>

#include <algorithm>

namespace staging {

namespace {

constexpr std::byte kNewVariable{1}, kStrided{2};
constexpr std::uint64_t kLastByte = 0x7f;
constexpr int kBitsInByte = 7, kMostBits = 63;

/// Of numbers that somebody has checked, or will check: those that are too large must do no harm here.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

void put(Bytes &bytes, std::int64_t number) {
  auto left = static_cast<std::uint64_t>(number);
  for (; left > kLastByte; left >>= kBitsInByte) bytes.push_back(static_cast<std::byte>(left | (kLastByte + 1)));
  bytes.push_back(static_cast<std::byte>(left));
}

}  // namespace

void Hull::cover(std::size_t dims, const std::int64_t *start, const std::int64_t *count, const std::int64_t *stride) {
  const bool is_first = begin.empty();
  begin.resize(dims);
  end.resize(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    const auto steps = count == nullptr ? 0 : count[d] - 1, step = stride == nullptr ? 1 : stride[d];
    const auto last = sum(start[d], sum(product(steps, step), 1));
    begin[d] = is_first ? start[d] : std::min(begin[d], start[d]);
    end[d] = is_first ? last : std::max(end[d], last);
  }
}

void Hull::cover(const Hull &other) {
  for (std::size_t d = 0; d < begin.size(); ++d) {
    begin[d] = std::min(begin[d], other.begin[d]);
    end[d] = std::max(end[d], other.end[d]);
  }
}

bool overlap(const Hull &a, const Hull &b) {
  if (a.varid != b.varid) return false;
  for (std::size_t d = 0; d < std::min(a.begin.size(), b.begin.size()); ++d)
    if (a.begin[d] >= b.end[d] || b.begin[d] >= a.end[d]) return false;
  return true;
}

void PieceList::append(const Piece &piece) {
  append(piece.varid, piece.start.size(), piece.start.data(), piece.count.data(),
         piece.stride.empty() ? nullptr : piece.stride.data());
}

void PieceList::append(int varid, std::size_t dims, const std::int64_t *start, const std::int64_t *count,
                       const std::int64_t *stride) {
  const bool is_new = hulls_.empty() || varid != hulls_.back().varid || dims != hulls_.back().begin.size();
  if (is_new) hulls_.push_back({varid, {}, {}});
  hulls_.back().cover(dims, start, count, stride);
  bytes_.push_back((is_new ? kNewVariable : std::byte{}) | (stride != nullptr ? kStrided : std::byte{}));
  if (is_new) {
    put(bytes_, varid);
    put(bytes_, static_cast<std::int64_t>(dims));
  }
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    const auto n = count == nullptr ? 1 : count[d];
    put(bytes_, start[d]);
    put(bytes_, n);
    if (stride != nullptr) put(bytes_, stride[d]);
    elements = product(elements, n);
  }
  elements_ += elements;
  ++size_;
}

void PieceList::append(const PieceList &more) {
  bytes_.insert(bytes_.end(), more.bytes_.begin(), more.bytes_.end());
  auto hull = more.hulls_.begin();
  const bool goes_on = !hulls_.empty() && hull != more.hulls_.end() && hulls_.back().varid == hull->varid &&
                       hulls_.back().begin.size() == hull->begin.size();
  if (goes_on) hulls_.back().cover(*hull++);
  hulls_.insert(hulls_.end(), hull, more.hulls_.end());
  size_ += more.size_;
  elements_ += more.elements_;
}

void PieceList::clear() {
  bytes_.clear();
  hulls_.clear();
  size_ = 0;
  elements_ = 0;
}

inline bool PieceReader::take(std::int64_t &number) {
  std::uint64_t value = 0;
  for (int shift = 0; at_ != end_ && shift < kMostBits; shift += kBitsInByte) {
    const auto byte = static_cast<std::uint64_t>(*at_++);
    value |= (byte & kLastByte) << shift;
    if (byte <= kLastByte) return number = static_cast<std::int64_t>(value), true;
  }
  return false;
}

bool PieceReader::take_dimensions(Piece &piece, bool strided) {
  const auto dims = static_cast<std::size_t>(dims_);
  piece.start.resize(dims);
  piece.count.resize(dims);
  piece.stride.resize(strided ? dims : 0);
  for (std::size_t d = 0; d < dims; ++d) {
    if (!take(piece.start[d]) || !take(piece.count[d])) return false;
    if (strided && !take(piece.stride[d])) return false;
  }
  return true;
}

bool PieceReader::next(Piece &piece) {
  if (at_ == end_ || failed_) return false;
  const auto flags = *at_++;
  failed_ = true;
  if ((flags & ~(kNewVariable | kStrided)) != std::byte{}) return false;
  if ((flags & kNewVariable) != std::byte{}) {
    if (!take(varid_) || !take(dims_) || varid_ > INT32_MAX) return false;
  }
  // A dimension takes two bytes at least, so that nobody is made to reserve room for what did not come.
  if (dims_ < 0 || dims_ > (end_ - at_) / 2) return false;
  piece.varid = static_cast<std::int32_t>(varid_);
  if (!take_dimensions(piece, (flags & kStrided) != std::byte{})) return false;
  failed_ = false;
  return true;
}

}  // namespace staging
