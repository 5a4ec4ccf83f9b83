// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/opening.hpp>

#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>
#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <filesystem>

namespace interpose {

namespace {

/// Whether one of this process's descriptors is this file.
bool is_open_here(const staging::FileIdentity &identity) {
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd", error))
    if (staging::identity_of(entry.path().string()) == identity) return true;
  return false;
}

nnti::Fd open_file(const std::string &name, bool writable) {
  return nnti::Fd(::open(name.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
}

/// Finds the file that PnetCDF has open just now: MPI-IO decides whether what stands before a colon belongs to its
/// name.
void find_file(const OpenedAs &as, bool writable, ProgramFile &found) {
  for (const auto &name : as.names) {
    auto file = open_file(name, writable);
    if (!file || (as.names.size() > 1 && !is_open_here(staging::identity_of(file.get())))) continue;
    found.file = std::move(file);
    found.name = name;
    return;
  }
}

}  // namespace

ProgramFile create_as_program(const OpenedAs &as, int cmode, MPI_Info info) {
  ProgramFile created;
  int id = -1;
  created.nc_error = ncmpi_create(MPI_COMM_SELF, as.path.c_str(), cmode, info, &id);
  if (created.nc_error != NC_NOERR) return created;
  find_file(as, true, created);
  (void)ncmpi_close(id);
  return created;
}

ProgramFile open_as_program(const OpenedAs &as, MPI_Info info) {
  ProgramFile opened;
  int id = -1;
  opened.nc_error = ncmpi_open(MPI_COMM_SELF, as.path.c_str(), as.mode, info, &id);
  if (opened.nc_error != NC_NOERR && opened.nc_error != NC_ENULLPAD) return opened;
  MPI_Offset bytes = 0;
  ncmpi_inq_get_size(id, &bytes);
  opened.bytes_read = bytes;
  find_file(as, (as.mode & NC_WRITE) != 0, opened);
  (void)ncmpi_close(id);
  return opened;
}

// A file that does not exist has nothing to be settled: that saves new files a question.
void settle(const OpenedAs &as) {
  for (const auto &name : as.names) {
    const auto identity = staging::identity_of(name);
    if (identity.inode == 0) continue;
    if (auto settled = Session::get().client()->settle({identity, name}); !settled)
      nessie::log::error("{}: waiting for its data to be written: {}", as.path, settled.error().to_string());
  }
}

// A name with a colon would be taken apart by PnetCDF: each process has a name of its own for what it has open.
int open_once_more(const OpenedAs &as, MPI_Comm comm, int omode, MPI_Info info, int *native_id) {
  nnti::Fd file;
  for (const auto &name : as.names)
    if (!file) file = open_file(name, (omode & NC_WRITE) != 0);
  const auto name = as.names.size() == 1 ? as.names.front() : fmt::format("/proc/self/fd/{}", file.get());
  return ncmpi_open(comm, name.c_str(), omode, info, native_id);
}

}  // namespace interpose
