// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/regions.hpp>

#include <algorithm>

namespace interpose {

namespace {

Region make_region(const Variable &variable, const MPI_Offset *start, const MPI_Offset *count,
                   const MPI_Offset *stride) {
  Region region;
  const auto dimensions = static_cast<std::size_t>(variable.dimensions());
  region.piece.varid = variable.layout.varid;
  for (std::size_t i = 0; i < dimensions; ++i) {
    region.piece.start.push_back(start[i]);  // NOLINT(clang-analyzer-core.NullDereference): checked
    region.piece.count.push_back(count == nullptr ? 1 : count[i]);
    region.elements *= region.piece.count.back();
  }
  const bool strided =
      stride != nullptr && std::any_of(stride, stride + dimensions, [](auto step) { return step > 1; });
  if (strided) region.piece.stride.assign(stride, stride + dimensions);
  if (variable.layout.is_record) {
    const auto records = region.piece.count[0];
    region.last_record = stride == nullptr ? start[0] + records : start[0] + (records - 1) * stride[0] + 1;  // NOLINT
  }
  return region;
}

Region whole(File &file, const Variable &variable) {
  std::vector<MPI_Offset> start(variable.layout.shape.size(), 0);
  std::vector<MPI_Offset> count(variable.layout.shape.begin(), variable.layout.shape.end());
  if (variable.layout.is_record) count[0] = file.num_records;
  return make_region(variable, start.data(), count.data(), nullptr);
}

}  // namespace

Region region_of(File &file, const Access &access) {
  const Variable &variable = *file.variable(access.varid);
  if (access.shape == Shape::kVar) return whole(file, variable);
  return make_region(variable, access.start, access.shape == Shape::kVar1 ? nullptr : access.count, access.stride);
}

std::vector<Region> regions_of(File &file, const Access &access) {
  const Variable &variable = *file.variable(access.varid);
  std::vector<Region> regions;
  for (int i = 0; i < access.num; ++i) {
    const MPI_Offset *start = variable.dimensions() == 0 ? nullptr : access.starts[i];
    const MPI_Offset *count = access.counts == nullptr || variable.dimensions() == 0 ? nullptr : access.counts[i];
    Region region = make_region(variable, start, count, nullptr);
    if (region.elements > 0) regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace interpose
