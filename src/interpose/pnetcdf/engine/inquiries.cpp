// SPDX-License-Identifier: BSD-3-Clause
// Inquiries that the mirror cannot answer alone.
#include <interpose/pnetcdf/engine/file_table.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/hints.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace interpose {

namespace {

bool is_unlimited(const File &file, int dimid) {
  int unlimited = -1;
  ncmpi_inq_unlimdim(file.id(), &unlimited);
  return unlimited >= 0 && dimid == unlimited;
}

}  // namespace

int on_inq_dim(File &file, int dimid, char *name, MPI_Offset *length) {
  const int error = ncmpi_inq_dim(file.id(), dimid, name, length);
  if (error == NC_NOERR && !file.is_native() && length != nullptr && is_unlimited(file, dimid))
    *length = file.num_records;
  return error;
}

int on_inq_dimlen(File &file, int dimid, MPI_Offset *length) {
  const int error = ncmpi_inq_dimlen(file.id(), dimid, length);
  if (error == NC_NOERR && !file.is_native() && length != nullptr && is_unlimited(file, dimid))
    *length = file.num_records;
  return error;
}

int on_inq_var_fill(File &file, int varid, int *no_fill, void *fill_value) {
  const int error = ncmpi_inq_var_fill(file.id(), varid, no_fill, fill_value);
  if (error == NC_NOERR && !file.is_native() && no_fill != nullptr) *no_fill = file.no_fill(varid);
  return error;
}

int on_inq_num_rec_vars(File &file, int *count) {
  if (file.is_native()) return ncmpi_inq_num_rec_vars(file.id(), count);
  if (count != nullptr) *count = file.count_record_variables();
  return NC_NOERR;
}

int on_inq_num_fix_vars(File &file, int *count) {
  if (file.is_native()) return ncmpi_inq_num_fix_vars(file.id(), count);
  if (count == nullptr) return NC_NOERR;
  const int error = ncmpi_inq_nvars(file.id(), count);
  *count -= file.count_record_variables();
  return error;
}

int on_inq_header_size(File &file, MPI_Offset *size) {
  const int error = ncmpi_inq_header_size(file.id(), size);
  if (error == NC_NOERR && size != nullptr && !file.is_native() && file.is_new) *size = 0;
  return error;
}

int on_inq_header_extent(File &file, MPI_Offset *extent) {
  const int error = ncmpi_inq_header_extent(file.id(), extent);
  if (error != NC_NOERR || extent == nullptr || file.is_native()) return error;
  if (file.is_new) *extent = 0;
  // Where there are no variables, native PnetCDF knows it of files that it made, but not of those that it opened.
  if (*extent == 0 && !file.is_new && file.was_created) return ncmpi_inq_header_size(file.id(), extent);
  return error;
}

int on_inq_path(File &file, int *length, char *path) {
  if (file.opened_as().path.empty()) return ncmpi_inq_path(file.id(), length, path);
  const std::string &name = file.opened_as().path;
  if (length != nullptr) *length = static_cast<int>(name.size());
  if (path != nullptr) std::memcpy(path, name.c_str(), name.size() + 1);
  return NC_NOERR;
}

namespace {

int add_to(int error, MPI_Offset *size, std::int64_t bytes) {
  if (error == NC_NOERR && size != nullptr) *size += bytes;
  return error;
}

}  // namespace

int on_inq_put_size(File &file, MPI_Offset *size) {
  if (file.is_native()) return add_to(ncmpi_inq_put_size(file.id(), size), size, file.put_bytes);
  if (size != nullptr) *size = file.put_bytes;
  return NC_NOERR;
}

int on_inq_get_size(File &file, MPI_Offset *size) {
  if (file.is_native()) return add_to(ncmpi_inq_get_size(file.id(), size), size, file.get_bytes);
  if (size != nullptr) *size = file.get_bytes;
  return NC_NOERR;
}

namespace {

/// A number of the file system's, where MPI-IO on the servers knows it: about the mirror it would be another one.
void look_up(const File &file, std::string_view key, int *number) {
  const auto *value = find_hint(file.hints_in_use, key);
  if (value != nullptr && number != nullptr) *number = static_cast<int>(std::strtol(value->c_str(), nullptr, 10));
}

}  // namespace

int on_inq_striping(File &file, int *unit_bytes, int *count) {
  const int error = ncmpi_inq_striping(file.id(), unit_bytes, count);
  if (error != NC_NOERR || file.is_native()) return error;
  look_up(file, "striping_unit", unit_bytes);
  look_up(file, "striping_factor", count);
  return NC_NOERR;
}

namespace {

/// What native PnetCDF knows of alignment before it has laid out the first variable: what the program asked for. The
/// mirror has been through that once.
void show_alignment_asked_for(const File &file, MPI_Info info) {
  for (const char *key : {"nc_header_align_size", "nc_var_align_size", "nc_record_align_size"}) {
    const auto *asked = find_hint(file.opened_as().hints, key);
    errno = 0;
    auto bytes = asked == nullptr ? 0 : std::max(0LL, std::strtoll(asked->c_str(), nullptr, 10));
    if (errno != 0) bytes = 0;
    MPI_Info_set(info, key, std::to_string(bytes).c_str());
  }
}

}  // namespace

// What native PnetCDF makes of the hints depends on the variables, and on the file system.
int on_inq_file_info(File &file, MPI_Info *info) {
  const int error = ncmpi_inq_file_info(file.id(), info);
  if (error != NC_NOERR || file.is_native() || info == nullptr || *info == MPI_INFO_NULL) return error;
  if (file.is_new) show_alignment_asked_for(file, *info);
  for (const staging::Hint &hint : file.hints_in_use) MPI_Info_set(*info, hint.key.c_str(), hint.value.c_str());
  return NC_NOERR;
}

int on_get_file_info(File &file, MPI_Info *info) { return on_inq_file_info(file, info); }  // the deprecated name

int on_inq_files_opened(int *num, int *ncids) {
  if (num == nullptr) return NC_EINVAL;
  const auto open = files().ids();
  *num = static_cast<int>(open.size());
  if (ncids != nullptr) std::copy(open.begin(), open.end(), ncids);
  return NC_NOERR;
}

}  // namespace interpose
