// SPDX-License-Identifier: BSD-3-Clause
// Many small pieces that are read from the file itself: a native call for each would take longer than all of the rest.
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

namespace {

bool meet(std::vector<Interval> &runs) {
  std::ranges::sort(runs, {}, &Interval::begin);
  const auto overlaps = [](const Interval &one, const Interval &next) { return next.begin < one.end; };
  return std::ranges::adjacent_find(runs, overlaps) != runs.end();
}

std::vector<Box> boxes_of(std::span<const Piece> pieces) {
  std::vector<Box> boxes;
  for (const auto &piece : pieces) boxes.push_back({piece.start, piece.count});
  return boxes;
}

std::size_t bytes_of(std::span<const Piece> pieces, int element_bytes) {
  std::int64_t elements = 0;
  for (const auto &piece : pieces) elements += piece.elements();
  return static_cast<std::size_t>(elements * element_bytes);
}

}  // namespace

/// How many pieces, from the first one on, one native call carries out: of one variable, without strides, none of more
/// than a record (see drainer.cpp), and none over another, because what comes last would not be defined.
std::size_t Server::batch_of(OpenFile &file, std::span<const Piece> pieces) {
  const auto &variable = file.find(pieces.front().varid)->cached->variable;
  if (variable.dims() == 0) return 1;
  std::vector<Interval> runs;
  std::size_t size_bytes = 0;
  for (const auto &piece : pieces) {
    size_bytes += bytes_of({&piece, 1}, variable.element_bytes);
    const bool fits = piece.varid == variable.varid && piece.stride.empty() && size_bytes <= kBounceBytes &&
                      piece.elements() > 0 && (!variable.is_record || piece.count[0] == 1);
    if (!fits) break;
    runs.push_back(bounds(variable, piece));
  }
  const auto count = runs.size();
  return count < 2 || meet(runs) ? 1 : count;
}

/// Of a variable that has nothing in pages.
Result<int> Server::read_batch(Request &request, OpenFile &file, std::span<const Piece> pieces, std::uint64_t &offset) {
  const auto &variable = file.find(pieces.front().varid)->cached->variable;
  const auto size = bytes_of(pieces, variable.element_bytes);
  const auto boxes = boxes_of(pieces);
  const auto bounce = bounces_.take(request.caller());
  if (!bounce.ok()) return bounce.error();
  statistics_.bytes_read += size;
  const auto records = file.num_records;
  const int error = on_io([&] { return file.native->read(variable, boxes, records, bounce->data()); });
  if (error == NC_NOERR)
    if (auto status = push(request, {bounce->data(), size}, offset); !status.ok()) return status.error();
  offset += size;
  return error;
}

}  // namespace staging
