// SPDX-License-Identifier: BSD-3-Clause
// Design notes. A mirror costs the program one descriptor, that of MPI-IO, as the file itself would natively: ours is
// closed as soon as PnetCDF has opened the memory, which stays reachable through a mapping of it. It is as long as the
// header, whatever the file's size: a limit on the size of files counts what the program would have written itself. Our
// descriptor is the first that is taken and the first that is given back; those of MPI-IO come from a reserve.
#include <interpose/pnetcdf/engine/mirror.hpp>

#include <interpose/pnetcdf/engine/native_turn.hpp>

#include <base/fd.hpp>
#include <base/size_limit.hpp>

#include <pnetcdf.h>

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

namespace interpose {

namespace {

constexpr std::size_t kFirstMapping = 4096;

std::string path_of(const nessie::Fd &file) { return fmt::format("/proc/self/fd/{}", file.get()); }

/// Invalid if this system does not let us.
nessie::Fd make_file() {
  nessie::Fd file(memfd_create("nessie-header", MFD_CLOEXEC));
  if (file && access(path_of(file).c_str(), R_OK | W_OK) != 0) file.reset();
  return file;
}

bool write_all(const nessie::Fd &file, std::span<const std::byte> bytes) {
  const nessie::SizeLimitIsError limit;
  while (!bytes.empty()) {
    const auto written = ::write(file.get(), bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

bool Mirror::create(int cmode, MPI_Info info) {
  drop();
  NativeTurn turn;
  const auto file = make_file();
  if (!file || !turn.lend_reserve()) return false;
  if (ncmpi_create(MPI_COMM_SELF, path_of(file).c_str(), cmode & ~NC_NOCLOBBER, info, &id_) != NC_NOERR) return false;
  void *mapped = mmap(nullptr, kFirstMapping, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped != MAP_FAILED) mapped_ = {static_cast<const std::byte *>(mapped), kFirstMapping};
  // Leaves and enters define mode once, because aborting a file that is quite new would mean to delete it.
  return ncmpi_enddef(id_) == NC_NOERR && ncmpi_redef(id_) == NC_NOERR;
}

bool Mirror::open(std::span<const std::byte> header, int omode, MPI_Info info) {
  drop();
  NativeTurn turn;
  const auto file = make_file();
  if (!file || !write_all(file, header) || !turn.lend_reserve()) return false;
  (void)ncmpi_open(MPI_COMM_SELF, path_of(file).c_str(), omode, info, &id_);  // NC_ENULLPAD does no harm
  return id_ >= 0;
}

void Mirror::end_define(const Layout &layout) {
  if (ended_ != Ended::kNot) return;
  const NativeTurn turn;
  const nessie::SizeLimitIsError limit;
  const int error = ncmpi__enddef(id_, layout[0], layout[1], layout[2], layout[3]);
  ended_ = error == NC_NOERR ? Ended::kWell : Ended::kBadly;
}

// Ending it once more would move what lies behind the header, if that has grown.
void Mirror::redefine() {
  if (ended_ == Ended::kWell) ncmpi_redef(id_);
  if (ended_ != Ended::kNot) ended_ = Ended::kOnceBefore;
}

std::span<const std::byte> Mirror::header() {
  MPI_Offset size = 0;
  if (ended_ != Ended::kWell || ncmpi_inq_header_size(id_, &size) != NC_NOERR) return {};
  const auto size_bytes = static_cast<std::size_t>(size);
  return map(size_bytes) ? mapped_.first(size_bytes) : std::span<const std::byte>();
}

bool Mirror::map(std::size_t size_bytes) {
  if (mapped_.empty() || mapped_.size() >= size_bytes) return !mapped_.empty();
  void *mapped = mremap(const_cast<std::byte *>(mapped_.data()), mapped_.size(), size_bytes, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) return false;
  mapped_ = {static_cast<const std::byte *>(mapped), size_bytes};
  return true;
}

void Mirror::drop() {
  if (id_ < 0 && mapped_.empty()) return;
  const NativeTurn turn;
  if (id_ >= 0) ncmpi_abort(id_);
  if (!mapped_.empty()) munmap(const_cast<std::byte *>(mapped_.data()), mapped_.size());
  id_ = -1;
  ended_ = Ended::kNot;
  mapped_ = {};
}

}  // namespace interpose
