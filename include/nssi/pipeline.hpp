// SPDX-License-Identifier: BSD-3-Clause
// The usual way to work on bulk data: piece by piece, in order, while the next pieces are on their way.
//
// Pieces are under way while the callback works if something drives meanwhile: it does for handlers in a pool
// (PoolOptions); on the driver's own thread only as far as the network moves data by itself, or the callback waits.
#pragma once

#include <nssi/nssi.hpp>

#include <functional>
#include <span>

namespace nssi {

struct PipelineOptions {
  std::size_t piece_bytes = std::size_t{1} << 20;
  std::size_t depth = 2;  ///< pieces that are under way while another one is worked on
  /// What of the request's data; kRest: to their end.
  std::uint64_t offset = 0, size_bytes = Part::kRest;
  /// Data that can be read where they lie (Request::view_data) are not moved. Their caller may change them at any
  /// moment: the callback then reads each byte once, before it relies on any.
  bool in_place = false;
};

/// Works on the bytes at `offset` of the request's data; an error ends the pipeline.
using ConsumePiece = std::function<Status(std::span<const std::byte> piece, std::uint64_t offset)>;
using ProducePiece = std::function<Status(std::span<std::byte> piece, std::uint64_t offset)>;

/// Pulls the data, in pieces, and calls `consume` with each, in order. Uses depth + 1 pieces of the runtime's memory
/// (Memory). The first error, of a transfer (as Request::get_data) or of `consume`, ends it; when it returns, or
/// throws what `consume` has thrown, nothing is under way any more. kInvalidArgument: pieces of no size, or none under
/// way. kOutOfRange: the range is not within the data. kNoMemory.
Status pull_in_pieces(Runtime &runtime, Request &request, const ConsumePiece &consume,
                      const PipelineOptions &options = {});
/// The same the other way: `produce` fills each piece, which is then pushed. ok: all are visible to the caller before
/// the result. After an error those that were pushed before it may be there.
Status push_in_pieces(Runtime &runtime, Request &request, const ProducePiece &produce,
                      const PipelineOptions &options = {});

}  // namespace nssi
