// SPDX-License-Identifier: BSD-3-Clause
// What is put into a file and read from it, and its number of records.
#include <services/staging/server/native_file.hpp>

#include <services/staging/server/header_records.hpp>

#include <pnetcdf.h>

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace staging {

namespace {

std::vector<MPI_Offset> offsets(const Extents &extents) {
  std::vector<MPI_Offset> out(extents.begin(), extents.end());
  if (out.empty()) out.push_back(0);  // a scalar has none, but PnetCDF looks at the pointer
  return out;
}

}  // namespace

std::int64_t NativeFile::num_records() const {
  int unlimited = -1;
  MPI_Offset length = 0;
  if (ncmpi_inq_unlimdim(ncid_, &unlimited) == NC_NOERR && unlimited >= 0) ncmpi_inq_dimlen(ncid_, unlimited, &length);
  return length;
}

std::int64_t NativeFile::records_in_header() const {
  std::uint64_t present = 0;
  return read_num_records(fd_.get(), present) ? static_cast<std::int64_t>(present) : 0;
}

template <class Put> int NativeFile::put(Put put) {
  const Changing changing(*this);
  const auto before = has_records_ ? records_in_header() : 0;
  if (has_records_) see_records(before);
  errno = 0;
  const int error = note_errno(put());
  if (has_records_) correct_num_records(before);
  return error;
}

/// PnetCDF has written the number of records that it knows of. Another server may have written a larger one; and of a
/// record that it counts there may be a part only.
void NativeFile::correct_num_records(std::int64_t before) {
  const auto own = num_records(), present = records_in_header();
  const auto correct = std::max(before, std::min(own, allowed_records_.load()));
  if (present < correct || (present == own && own > correct))
    write_num_records(fd_.get(), static_cast<std::uint64_t>(correct));
}

/// Whether a strided access goes over the records of a variable that has no other dimension. PnetCDF 1.12.3 takes its
/// elements for neighbours in the file.
bool NativeFile::strides_over_records(const Piece &piece) const {
  if (piece.stride.size() != 1 || piece.stride[0] == 1 || piece.count[0] < 2) return false;
  int dimid = -1, unlimited = -1;
  ncmpi_inq_vardimid(ncid_, piece.varid, &dimid);
  ncmpi_inq_unlimdim(ncid_, &unlimited);
  return unlimited >= 0 && dimid == unlimited;
}

template <class Transfer> int NativeFile::each_record(const Piece &piece, std::byte *data, Transfer transfer) {
  nc_type type = NC_NAT;
  ncmpi_inq_vartype(ncid_, piece.varid, &type);
  for (std::int64_t i = 0; i < piece.count[0]; ++i) {
    const Piece record{piece.varid, {piece.start[0] + i * piece.stride[0]}, {1}, {}};
    if (int error = transfer(record, data + i * bytes_of(type)); error != NC_NOERR) return error;
  }
  return NC_NOERR;
}

int NativeFile::write(const Piece &piece, std::byte *data) {
  if (strides_over_records(piece))
    return each_record(piece, data, [&](const Piece &record, std::byte *at) { return write(record, at); });
  const auto start = offsets(piece.start), count = offsets(piece.count);
  if (piece.stride.empty())
    return put(
        [&] { return ncmpi_put_vara_all(ncid_, piece.varid, start.data(), count.data(), data, 0, MPI_DATATYPE_NULL); });
  const auto stride = offsets(piece.stride);
  return put([&] {
    return ncmpi_put_vars_all(ncid_, piece.varid, start.data(), count.data(), stride.data(), data, 0,
                              MPI_DATATYPE_NULL);
  });
}

namespace {

/// Boxes as ncmpi_put_varn and ncmpi_get_varn take them.
struct Lists {
  explicit Lists(const std::vector<Box> &boxes) {
    extents.reserve(2 * boxes.size());
    for (const auto &box : boxes) {
      starts.push_back(extents.emplace_back(offsets(box.start)).data());
      counts.push_back(extents.emplace_back(offsets(box.count)).data());
    }
  }
  int size() const { return static_cast<int>(starts.size()); }
  std::vector<std::vector<MPI_Offset>> extents;
  std::vector<MPI_Offset *> starts, counts;
};

}  // namespace

int NativeFile::write(int varid, const std::vector<Box> &boxes, std::byte *data) {
  if (boxes.size() == 1) return write(Piece{varid, boxes[0].start, boxes[0].count, {}}, data);
  const Lists lists(boxes);
  return put([&] {
    return ncmpi_put_varn_all(ncid_, varid, lists.size(), lists.starts.data(), lists.counts.data(), data, 0,
                              MPI_DATATYPE_NULL);
  });
}

int NativeFile::write(const std::vector<Block> &blocks) {
  std::vector<int> requests, statuses(blocks.size());
  const auto post = [&](const Block &block) {
    const auto start = offsets(block.box.start), count = offsets(block.box.count);
    return ncmpi_iput_vara(ncid_, block.varid, start.data(), count.data(), block.data, 0, MPI_DATATYPE_NULL,
                           &requests.emplace_back(NC_REQ_NULL));
  };
  return put([&] {
    for (const auto &block : blocks)
      if (const int error = post(block); error != NC_NOERR)
        return ncmpi_cancel(ncid_, NC_REQ_ALL, nullptr, nullptr), error;
    const int error = ncmpi_wait_all(ncid_, static_cast<int>(requests.size()), requests.data(), statuses.data());
    const auto failed = std::ranges::find_if(statuses, [](int status) { return status != NC_NOERR; });
    return error != NC_NOERR || failed == statuses.end() ? error : *failed;
  });
}

/// The first element that does not end before the end of the file: it and those behind it, which lie behind it in the
/// file, too, cannot be read.
std::int64_t NativeFile::first_missing(const Variable &variable) const {
  MPI_Offset begin = 0, record_bytes = 0;
  struct stat status {};
  const bool is_known = ncmpi_inq_varoffset(ncid_, variable.varid, &begin) == NC_NOERR &&
                        ncmpi_inq_recsize(ncid_, &record_bytes) == NC_NOERR && ::fstat(fd_.get(), &status) == 0;
  if (!is_known) return INT64_MAX;
  if (status.st_size <= begin) return 0;
  const std::int64_t bytes = status.st_size - begin, element_bytes = variable.element_bytes;
  if (!variable.is_record || record_bytes == 0) return bytes / element_bytes;
  const auto extent = variable.extent_elements();
  return bytes / record_bytes * extent + std::min<std::int64_t>(extent, bytes % record_bytes / element_bytes);
}

namespace {

/// Of data that were read, those of the elements from `first` on.
void clear_from(const Variable &variable, const Piece &piece, std::int64_t first, std::byte *data) {
  if (bounds(variable, piece).end <= first) return;
  for (RunCursor cursor(variable, piece); !cursor.done();) {
    const auto run = cursor.run();
    const auto there = std::clamp(first - run.begin, std::int64_t{0}, run.size());
    std::memset(data + there * variable.element_bytes, 0,
                static_cast<std::size_t>((run.size() - there) * variable.element_bytes));
    data += run.size() * variable.element_bytes;
    cursor.consume(run.size());
  }
}

}  // namespace

int NativeFile::read(const Variable &variable, const std::vector<Box> &boxes, std::int64_t known_records,
                     std::byte *data) {
  std::int64_t records = 0;
  for (const auto &box : boxes)
    if (variable.is_record) records = std::max(records, box.start[0] + box.count[0]);
  if (records <= known_records)
    if (int error = see_records(records); error != NC_NOERR) return error;
  const Lists lists(boxes);
  const auto missing = first_missing(variable);
  const int error = ncmpi_get_varn_all(ncid_, variable.varid, lists.size(), lists.starts.data(), lists.counts.data(),
                                       data, 0, MPI_DATATYPE_NULL);
  if (error != NC_NOERR) return error;
  for (const auto &box : boxes) {
    clear_from(variable, {variable.varid, box.start, box.count, {}}, missing, data);
    data += box.elements() * variable.element_bytes;
  }
  return NC_NOERR;
}

int NativeFile::read(const Variable &variable, const Piece &piece, std::int64_t known_records, std::byte *data) {
  if (variable.is_record && piece.count[0] > 0) {
    const auto stride = piece.step(0);
    const auto end = piece.start[0] + (piece.count[0] - 1) * stride + 1;
    if (end <= known_records)
      if (int error = see_records(end); error != NC_NOERR) return error;
  }
  const auto get = [&](const Piece &record, std::byte *at) { return read(variable, record, known_records, at); };
  if (strides_over_records(piece)) return each_record(piece, data, get);
  const auto start = offsets(piece.start), count = offsets(piece.count), stride = offsets(piece.stride);
  const auto missing = first_missing(variable);
  const int error = piece.stride.empty()
                        ? ncmpi_get_vara_all(ncid_, piece.varid, start.data(), count.data(), data, 0, MPI_DATATYPE_NULL)
                        : ncmpi_get_vars_all(ncid_, piece.varid, start.data(), count.data(), stride.data(), data, 0,
                                             MPI_DATATYPE_NULL);
  // What lies behind the end of a file reads as zeros, and never as what was in MPI-IO's memory before.
  if (error == NC_NOERR) clear_from(variable, piece, missing, data);
  return error;
}

// What another handle has written of a record is there before the record counts.
int NativeFile::read_present(const Variable &variable, const Box &box, std::byte *data) {
  return put([&] { return read(variable, {variable.varid, box.start, box.count, {}}, INT64_MAX, data); });
}

int NativeFile::fill_record(int varid, std::int64_t record) {
  const auto fill = [&] { return put([&] { return ncmpi_fill_var_rec(ncid_, varid, record); }); };
  const int error = fill();
  if (error != NC_ENOTFILL || lost_fill_modes_.empty()) return error;
  if (int failed = end_define({}); failed != NC_NOERR) return failed;
  return fill();
}

int NativeFile::raise_num_records(std::int64_t num_records) {
  const Changing changing(*this);
  errno = 0;
  std::uint64_t present = 0;
  if (num_records <= 0 || !writable_ || lost_header(fd_.get())) return NC_NOERR;  // natively nobody looks
  if (!read_num_records(fd_.get(), present)) return note_errno(NC_EREAD);
  if (present >= static_cast<std::uint64_t>(num_records)) return NC_NOERR;
  return write_num_records(fd_.get(), static_cast<std::uint64_t>(num_records)) ? NC_NOERR : note_errno(NC_EWRITE);
}

// PnetCDF reads the number of records when it opens a file, and never again.
int NativeFile::see_records(std::int64_t num_records) {
  if (num_records <= this->num_records()) return NC_NOERR;
  return writable_ ? extend_to(num_records) : reopen_to_read();
}

// Opening it again would lose what PnetCDF keeps in memory of a file that it has laid out, and with which it lays it
// out once more. Writing none of the records after the last has it know of them all; it then writes that number, which
// must not be less than what the header has.
int NativeFile::extend_to(std::int64_t num_records) {
  const Changing changing(*this);
  std::vector<Variable> all;
  if (int error = variables(all); error != NC_NOERR) return error;
  const auto record = std::ranges::find_if(all, [](const Variable &variable) { return variable.is_record; });
  if (record == all.end()) return NC_NOERR;
  std::vector<MPI_Offset> start(record->shape.size(), 0), count(record->shape.size(), 0);
  start[0] = std::max(num_records, records_in_header());
  const char nothing = 0;
  return ncmpi_put_vara_all(ncid_, record->varid, start.data(), count.data(), &nothing, 0, MPI_DATATYPE_NULL);
}

}  // namespace staging
