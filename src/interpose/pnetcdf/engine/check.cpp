// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/check.hpp>

#include <interpose/pnetcdf/engine/arguments.hpp>
#include <interpose/pnetcdf/engine/mirror.hpp>

#include <limits>

namespace interpose {

namespace {

/// Whether an access of no elements may start where a dimension ends: a choice made when the native library was built,
/// which PNETCDF_RELAX_COORD_BOUND overrides. So the native library is asked.
bool ask_whether_end_is_legal() {
  Mirror probe;
  int dimension = 0, variable = 0, request = NC_REQ_NULL;
  if (!probe.create(NC_CLOBBER, MPI_INFO_NULL)) return true;
  ncmpi_def_dim(probe.id(), "x", 1, &dimension);
  ncmpi_def_var(probe.id(), "v", NC_BYTE, 1, &dimension, &variable);
  const MPI_Offset start = 1, count = 0;
  const signed char nothing = 0;
  return ncmpi_iput_vara_schar(probe.id(), variable, &start, &count, &nothing, &request) == NC_NOERR;
}

bool end_is_legal() {
  static const bool legal = ask_whether_end_is_legal();
  return legal;
}

int check_start(MPI_Offset start, MPI_Offset count, MPI_Offset length) {
  if (start < 0 || start > length) return NC_EINVALCOORDS;
  if (start < length) return NC_NOERR;
  return count > 0 || !end_is_legal() ? NC_EINVALCOORDS : NC_NOERR;
}

int check_edge(MPI_Offset start, MPI_Offset count, const MPI_Offset *stride, MPI_Offset length) {
  if (count > length || start + count > length) return NC_EEDGE;
  if (stride != nullptr && count > 0 && start + (count - 1) * *stride >= length) return NC_EEDGE;
  return NC_NOERR;
}

/// The indices' rows that are bounded: not the record dimension, when records are written.
struct Bounds {
  const Variable &variable;
  MPI_Offset records;
  bool is_read;
  int dimensions() const { return variable.dimensions(); }
  bool has_records() const { return variable.layout.is_record; }
  MPI_Offset length(int i) const {
    return i == 0 && has_records() ? records : variable.layout.shape[static_cast<std::size_t>(i)];
  }
  int first_fixed() const { return has_records() ? 1 : 0; }
};

int check_starts(const Bounds &bounds, int format, const MPI_Offset *start, const MPI_Offset *count) {
  if (start == nullptr || start[0] < 0) return NC_EINVALCOORDS;
  if (bounds.has_records()) {
    if (format < 5 && start[0] > std::numeric_limits<std::uint32_t>::max()) return NC_EINVALCOORDS;
    const MPI_Offset length = count == nullptr ? 1 : count[0];
    if (bounds.is_read && bounds.records == 0 && length > 0) return NC_EINVALCOORDS;
    if (bounds.is_read)
      if (int error = check_start(start[0], length, bounds.records)) return error;
  }
  for (int i = bounds.first_fixed(); i < bounds.dimensions(); ++i)
    if (int error = check_start(start[i], count == nullptr ? 1 : count[i], bounds.length(i))) return error;
  return NC_NOERR;
}

int check_counts(const Bounds &bounds, const MPI_Offset *start, const MPI_Offset *count, const MPI_Offset *stride) {
  if (bounds.has_records()) {
    if (count[0] < 0) return NC_ENEGATIVECNT;
    if (bounds.is_read)
      if (int error = check_edge(start[0], count[0], stride, bounds.records)) return error;
  }
  for (int i = bounds.first_fixed(); i < bounds.dimensions(); ++i) {
    if (count[i] < 0) return NC_ENEGATIVECNT;
    if (int error = check_edge(start[i], count[i], stride == nullptr ? nullptr : stride + i, bounds.length(i)))
      return error;
  }
  for (int i = 0; stride != nullptr && i < bounds.dimensions(); ++i)
    if (stride[i] <= 0) return NC_ESTRIDE;
  return NC_NOERR;
}

}  // namespace

int check_call(File &file, Direction direction, Mode mode, int varid, MPI_Datatype element_type) {
  if (direction == Direction::kPut && !file.writable) return NC_EPERM;
  if (mode == Mode::kCollective || mode == Mode::kIndependent) {
    if (file.in_define_mode) return NC_EINDEFINE;
    if (mode == Mode::kCollective && file.independent) return NC_EINDEP;
    if (mode == Mode::kIndependent && !file.independent) return NC_ENOTINDEP;
  }
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  const Variable *variable = file.variable(varid);
  if (variable == nullptr) return NC_ENOTVAR;
  if (element_type == MPI_DATATYPE_NULL) return NC_NOERR;
  return (element_type == MPI_CHAR) == (variable->type == NC_CHAR) ? NC_NOERR : NC_ECHAR;
}

int check_indices(File &file, const Variable &variable, bool is_read, Shape shape, const MPI_Offset *start,
                  const MPI_Offset *count, const MPI_Offset *stride) {
  const Bounds bounds{variable, file.num_records, is_read};
  if (int error = check_starts(bounds, file.format, start, count)) return error;
  if (count == nullptr) return shape == Shape::kVar1 ? NC_NOERR : NC_EEDGE;
  return check_counts(bounds, start, count, stride);
}

int check(File &file, const Access &access) {
  const MPI_Datatype element_type = access.is_flexible() ? MPI_DATATYPE_NULL : access.memory.type;
  if (int error = check_call(file, access.direction, access.mode, access.varid, element_type)) return error;
  if (access.mode == Mode::kBuffered && access.shape != Shape::kVarN && !file.attached_buffer) return NC_ENULLABUF;
  const Variable &variable = *file.variable(access.varid);
  if (access.shape == Shape::kVar || access.shape == Shape::kVarN || variable.dimensions() == 0) return NC_NOERR;
  return check_indices(file, variable, access.is_read(), access.shape, access.start, access.count, access.stride);
}

int check_list(File &file, const Access &access) {
  const Variable &variable = *file.variable(access.varid);
  if (variable.dimensions() == 0) return access.num == 1 ? NC_NOERR : NC_EINVAL;
  if (access.starts == nullptr) return NC_ENULLSTART;
  for (int i = 0; i < access.num; ++i) {
    if (access.starts[i] == nullptr) return NC_ENULLSTART;
    const MPI_Offset *count = access.counts == nullptr ? nullptr : access.counts[i];
    const Shape shape = count == nullptr ? Shape::kVar1 : Shape::kVarA;
    if (int error = check_indices(file, variable, access.is_read(), shape, access.starts[i], count, nullptr))
      return error;
  }
  return NC_NOERR;
}

bool is_over(File &file, bool is_collective, int &error) {
  if (is_collective && file.is_safe()) {
    error = least(file, error);
    return error != NC_NOERR;
  }
  return error == NC_EPERM || error == NC_EINDEFINE || error == NC_EINDEP || error == NC_ENOTINDEP;
}

}  // namespace interpose
