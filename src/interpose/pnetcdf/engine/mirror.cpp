// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/mirror.hpp>

#include <pnetcdf.h>

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace interpose {

namespace {

std::string path_of(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

int Mirror::make_file() {
  drop();
  fd_ = memfd_create("nessie-header", MFD_CLOEXEC);
  return fd_ < 0 || access(path_of(fd_).c_str(), R_OK | W_OK) != 0 ? kNoMirror : NC_NOERR;
}

int Mirror::create(int cmode, MPI_Info info) {
  if (int error = make_file()) return error;
  if (int error = ncmpi_create(MPI_COMM_SELF, path_of(fd_).c_str(), cmode & ~NC_NOCLOBBER, info, &id_)) return error;
  // Leaves and enters define mode once, because aborting a file that is quite new would mean to delete it.
  if (int error = ncmpi_enddef(id_)) return error;
  return ncmpi_redef(id_);
}

int Mirror::open(std::span<const std::byte> header, std::int64_t file_size_bytes, int omode, MPI_Info info) {
  if (int error = make_file()) return error;
  const auto size = std::max(file_size_bytes, static_cast<std::int64_t>(header.size()));
  if (!write_all(fd_, header) || ftruncate(fd_, size) != 0) return kNoMirror;
  return ncmpi_open(MPI_COMM_SELF, path_of(fd_).c_str(), omode, info, &id_);
}

bool Mirror::settle(std::span<const std::byte> header, const std::int64_t (&layout)[4]) {
  if (ncmpi__enddef(id_, layout[0], layout[1], layout[2], layout[3]) != NC_NOERR) return false;
  std::vector<std::byte> mine(header.size());
  const auto got = pread(fd_, mine.data(), mine.size(), 0);
  return got == static_cast<ssize_t>(mine.size()) && std::ranges::equal(mine, header);
}

void Mirror::drop() {
  if (id_ >= 0) ncmpi_abort(id_);
  if (fd_ >= 0) close(fd_);
  id_ = fd_ = -1;
}

}  // namespace interpose
