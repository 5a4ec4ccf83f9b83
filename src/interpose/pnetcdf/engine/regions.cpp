// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/regions.hpp>

#include <algorithm>

namespace interpose {

namespace {

/// Also for a piece without elements, natively.
std::int64_t records_for(const staging::Piece &piece) {
  return piece.start[0] + (piece.count[0] - 1) * piece.step(0) + 1;
}

}  // namespace

void Region::add(const staging::VariableLayout &layout, const staging::Piece &piece) {
  if (piece.elements() == 0) return;
  const auto run = staging::bounds(layout, piece);
  is_ascending = is_ascending && run.begin >= bounds.end;
  bounds = hull(bounds, run);
  pieces.append(piece);
  if (layout.is_record) last_record = std::max(last_record, records_for(piece));
}

namespace {

/// `piece` becomes what these arguments mean; without `count`, all counts are one.
void set(staging::Piece &piece, std::size_t dims, const MPI_Offset *start, const MPI_Offset *count,
         const MPI_Offset *stride) {
  piece.start.assign(start, start + dims);
  if (count == nullptr)
    piece.count.assign(dims, 1);
  else
    piece.count.assign(count, count + dims);
  const bool strided = stride != nullptr && std::any_of(stride, stride + dims, [](auto step) { return step > 1; });
  piece.stride.clear();
  if (strided) piece.stride.assign(stride, stride + dims);
}

void set_whole(staging::Piece &piece, const File &file, const Variable &variable) {
  piece.start.assign(variable.layout.shape.size(), 0);
  piece.count = variable.layout.shape;
  if (variable.layout.is_record) piece.count[0] = file.num_records;
}

void add_list(Region &region, const Variable &variable, const Access &access, staging::Piece &piece) {
  const auto dims = static_cast<std::size_t>(variable.dimensions());
  for (int i = 0; i < access.num; ++i) {
    const MPI_Offset *start = dims == 0 ? nullptr : access.starts[i];
    const MPI_Offset *count = access.counts == nullptr || dims == 0 ? nullptr : access.counts[i];
    set(piece, dims, start, count, nullptr);
    region.add(variable.layout, piece);
  }
}

}  // namespace

Region region_of(File &file, const Access &access) {
  const Variable &variable = *file.variable(access.varid);
  const auto dims = static_cast<std::size_t>(variable.dimensions());
  Region region;
  staging::Piece piece;
  piece.varid = access.varid;
  if (access.shape == Shape::kVarN) return add_list(region, variable, access, piece), region;
  if (access.shape == Shape::kVar)
    set_whole(piece, file, variable);
  else
    set(piece, dims, access.start, access.shape == Shape::kVar1 ? nullptr : access.count, access.stride);
  region.add(variable.layout, piece);
  if (variable.layout.is_record) region.last_record = records_for(piece);
  return region;
}

}  // namespace interpose
