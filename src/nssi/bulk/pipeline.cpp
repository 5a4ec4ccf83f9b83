// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/pipeline.hpp>

#include <fmt/format.h>

#include <nssi/memory.hpp>

#include <algorithm>

namespace nssi {

namespace {

/// A range of a request's data in pieces, and a ring of memory for those that are under way or worked on.
class Ring {
 public:
  static Result<Ring> make(const Request &request, const PipelineOptions &options) {
    if (options.piece_bytes == 0 || options.depth == 0)
      return Error{Code::kInvalidArgument, "a pipeline needs pieces of at least one byte, and one of them under way"};
    const auto whole = request.data_bytes();
    const bool is_rest = options.size_bytes == Part::kRest && options.offset <= whole;
    const auto size_bytes = is_rest ? whole - options.offset : options.size_bytes;
    if (options.offset > whole || size_bytes > whole - options.offset)
      return Error{Code::kOutOfRange, fmt::format("{} bytes at {} are not within the caller's data of {}", size_bytes,
                                                  options.offset, whole)};
    return Ring(options, size_bytes);
  }
  /// kNoMemory.
  Status allocate(Runtime &runtime) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(slots_, piece_bytes_, &bytes)) bytes = ~std::uint64_t{0};
    auto memory = Memory::borrow(runtime, std::min(bytes, size_bytes_));
    if (!memory.ok()) return memory.error();
    memory_ = *std::move(memory);
    transfers_.resize(slots_);
    return {};
  }
  std::uint64_t pieces() const { return pieces_; }
  std::uint64_t slots() const { return slots_; }
  /// Within the request's data.
  std::uint64_t offset(std::uint64_t piece) const { return offset_ + piece * piece_bytes_; }
  std::size_t bytes_of(std::uint64_t piece) const {
    return std::min<std::uint64_t>(piece_bytes_, size_bytes_ - piece * piece_bytes_);
  }
  std::span<std::byte> memory(std::uint64_t piece) const {
    return memory_.bytes().subspan(piece % slots_ * piece_bytes_, bytes_of(piece));
  }
  /// The last one of that piece's slot.
  Transfer &transfer(std::uint64_t piece) { return transfers_[piece % slots_]; }

 private:
  Ring(const PipelineOptions &options, std::uint64_t size_bytes)
      : offset_(options.offset),
        size_bytes_(size_bytes),
        piece_bytes_(std::min<std::uint64_t>(options.piece_bytes, std::max<std::uint64_t>(size_bytes, 1))),
        pieces_(size_bytes / piece_bytes_ + (size_bytes % piece_bytes_ != 0 ? 1 : 0)),
        slots_(std::min<std::uint64_t>(options.depth, pieces_ - (pieces_ != 0 ? 1 : 0)) + 1) {}

  std::uint64_t offset_, size_bytes_, piece_bytes_, pieces_, slots_;
  Memory memory_;
  std::vector<Transfer> transfers_;  // goes first: it waits until nothing reaches the memory any more
};

Status consume_in_place(const Ring &ring, std::span<const std::byte> data, const ConsumePiece &consume) {
  for (std::uint64_t piece = 0; piece < ring.pieces(); ++piece) {
    const auto offset = ring.offset(piece);
    if (auto status = consume(data.subspan(offset, ring.bytes_of(piece)), offset); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status pull_in_pieces(Runtime &runtime, Request &request, const ConsumePiece &consume, const PipelineOptions &options) {
  auto ring = Ring::make(request, options);
  if (!ring.ok()) return ring.error();
  if (const auto *view = options.in_place ? request.view_data() : nullptr; view != nullptr)
    return consume_in_place(*ring, view->bytes(), consume);
  if (auto status = ring->allocate(runtime); !status.ok()) return status;
  std::uint64_t begun = 0;
  for (std::uint64_t piece = 0; piece < ring->pieces(); ++piece) {
    for (; begun < std::min(piece + ring->slots(), ring->pieces()); ++begun)
      ring->transfer(begun) = request.start_get(ring->memory(begun), ring->offset(begun));
    if (auto status = ring->transfer(piece).wait(); !status.ok()) return status;
    if (auto status = consume(ring->memory(piece), ring->offset(piece)); !status.ok()) return status;
  }
  return {};
}

Status push_in_pieces(Runtime &runtime, Request &request, const ProducePiece &produce, const PipelineOptions &options) {
  auto ring = Ring::make(request, options);
  if (!ring.ok()) return ring.error();
  if (auto status = ring->allocate(runtime); !status.ok()) return status;
  for (std::uint64_t piece = 0; piece < ring->pieces() + ring->slots(); ++piece) {
    if (piece >= ring->slots() && piece - ring->slots() < ring->pieces())
      if (auto status = ring->transfer(piece).wait(); !status.ok()) return status;
    if (piece >= ring->pieces()) continue;
    if (auto status = produce(ring->memory(piece), ring->offset(piece)); !status.ok()) return status;
    ring->transfer(piece) = request.start_put(ring->memory(piece), ring->offset(piece));
  }
  return {};
}

}  // namespace nssi
