// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/opening.hpp>

#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>
#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

/// Invalid if it cannot be opened, or is no regular file.
nnti::Fd open_file(const std::string &name, int flags) {
  nnti::Fd file(::open(name.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666));
  struct stat status {};
  if (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) file.reset();
  return file;
}

int access_of(int omode) { return (omode & NC_WRITE) != 0 ? O_RDWR : O_RDONLY; }

/// Whether MPI-IO must have its say in what is made: it decides what a name with a colon means, and how a file is
/// striped.
bool needs_mpi_io(const OpenedAs &as) {
  const auto stripes = [](const staging::Hint &hint) { return hint.key.starts_with("striping_"); };
  return as.names.size() > 1 || std::ranges::any_of(as.hints, stripes);
}

/// Finds the file that PnetCDF has open just now as `id`, and closes that.
ProgramFile find_file(const OpenedAs &as, int flags, int id) {
  ProgramFile found;
  for (const auto &name : as.names) {
    auto file = open_file(name, flags);
    if (!file || !is_open_here(staging::identity_of(file.get()))) continue;
    found = {std::move(file), name};
    break;
  }
  (void)ncmpi_close(id);
  return found;
}

}  // namespace

ProgramFile create_as_program(const OpenedAs &as, int cmode, MPI_Info info) {
  if (needs_mpi_io(as)) {
    int id = -1;
    if (ncmpi_create(MPI_COMM_SELF, as.path.c_str(), cmode, info, &id) != NC_NOERR) return {};
    return find_file(as, O_RDWR, id);
  }
  if ((cmode & NC_NOCLOBBER) != 0 && ::access(as.path.c_str(), F_OK) == 0) return {};
  return {open_file(as.path, O_RDWR | O_CREAT), as.names.front()};
}

ProgramFile open_as_program(const OpenedAs &as, MPI_Info info) {
  if (as.names.size() == 1) return {open_file(as.path, access_of(as.mode)), as.names.front()};
  int id = -1;
  const int error = ncmpi_open(MPI_COMM_SELF, as.path.c_str(), as.mode, info, &id);
  if (error != NC_NOERR && error != NC_ENULLPAD) return {};
  return find_file(as, access_of(as.mode), id);
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
    if (!file) file = open_file(name, access_of(omode));
  const auto name = as.names.size() == 1 ? as.names.front() : fmt::format("/proc/self/fd/{}", file.get());
  return ncmpi_open(comm, name.c_str(), omode, info, native_id);
}

}  // namespace interpose
