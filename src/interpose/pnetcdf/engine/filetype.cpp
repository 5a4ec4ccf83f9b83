// SPDX-License-Identifier: BSD-3-Clause
// ncmpi_put_vard and ncmpi_get_vard, which say where in the file by an MPI datatype, are not staged. A collective call
// hands the file back to native PnetCDF for good; an independent one, which cannot change what the other ranks do, is
// carried out by this rank alone on the file on disk.
#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/check.hpp>
#include <interpose/pnetcdf/engine/native.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <algorithm>

namespace interpose {

namespace {

int call_natively(int ncid, const FiletypeAccess &access) {
  const auto &[address, count, type] = access.memory;
  const bool put = access.direction == Direction::kPut;
  if (access.mode == Mode::kCollective)
    return put ? ncmpi_put_vard_all(ncid, access.varid, access.filetype, address, count, type)
               : ncmpi_get_vard_all(ncid, access.varid, access.filetype, address, count, type);
  return put ? ncmpi_put_vard(ncid, access.varid, access.filetype, address, count, type)
             : ncmpi_get_vard(ncid, access.varid, access.filetype, address, count, type);
}

std::int64_t records_of(int ncid) {
  int unlimited = -1;
  MPI_Offset records = 0;
  ncmpi_inq_unlimdim(ncid, &unlimited);
  if (unlimited >= 0) ncmpi_inq_dimlen(ncid, unlimited, &records);
  return records;
}

/// Opens the file for this process, in independent mode.
int open_alone(const File &file, NativeHandle &handle) {
  NativeTurn turn;
  (void)turn.lend_reserve();
  const int mode = file.writable ? NC_WRITE : NC_NOWRITE;
  const auto name = name_to_open(file, mode, handle);
  const int opened = ncmpi_open(MPI_COMM_SELF, name.c_str(), mode, MPI_INFO_NULL, &handle.id);
  return handle.id < 0 ? opened : ncmpi_begin_indep_data(handle.id);
}

int close_alone(int ncid) {
  const NativeTurn turn;
  return ncmpi_close(ncid);
}

int call_alone(File &file, const FiletypeAccess &access) {
  auto synced = Session::get().client()->sync(file.token(), file.num_records);
  if (!synced) return file.lost(synced.error(), "an independent access by filetype", NC_EFILE);
  if (*synced != NC_NOERR) return *synced;
  NativeHandle handle;
  int status = open_alone(file, handle);
  if (handle.id < 0) return status;
  if (status == NC_NOERR) status = call_natively(handle.id, access);
  file.num_records = std::max(file.num_records, records_of(handle.id));
  const int closed = close_alone(handle.id);
  return status != NC_NOERR ? status : closed;
}

template <class Call> int beside(const File &file, const FiletypeAccess &access, const Call &call) {
  return access.direction == Direction::kPut ? write_natively(file, call) : read_natively(file, call);
}

}  // namespace

int transfer(File &file, const FiletypeAccess &access) {
  const int error = check_call(file, access.direction, access.mode, access.varid, MPI_DATATYPE_NULL);
  const bool collective = access.mode == Mode::kCollective;
  if (is_fatal(error) || (error != NC_NOERR && (!collective || file.ranks().size() == 1))) return error;
  if (!collective) {
    if (access.memory.type != MPI_DATATYPE_NULL && access.memory.count == 0) return NC_NOERR;
    return beside(file, access, [&] { return call_alone(file, access); });
  }
  if (int status = hand_back(file, "it is accessed by an MPI filetype (ncmpi_put_vard, ncmpi_get_vard)")) return status;
  return beside(file, access, [&] { return call_natively(file.id(), access); });
}

}  // namespace interpose
