// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transport/allocation.hpp"

#include "base/size_limit.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace nnti {
namespace {

using nessie::Code;
using nessie::Error;

Error out_of_memory(std::string_view what, std::size_t size_bytes) {
  int cause = errno;
  const char *why = cause == EFBIG ? "the limit on the size of files (ulimit -f) is less" : std::strerror(cause);
  return {Code::kNoMemory, fmt::format("cannot {} {} bytes of shared memory: {}", what, size_bytes, why),
          nessie::Scope::kOperation, cause};
}

std::size_t round_to_pages(std::size_t size_bytes) {
  auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size_bytes + page - 1) / page * page;
}

bool grow(const nessie::Fd &fd, std::size_t size_bytes) {
  const nessie::SizeLimitIsError limit;
  return ::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) == 0;
}

void *map(int fd, std::size_t size_bytes, int protection) {
  void *base = ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  ::madvise(base, size_bytes, MADV_HUGEPAGE);  // where shared memory may have them
  return base;
}

bool is_safe_to_map(int fd, std::size_t size_bytes) {
  struct stat status {};
  int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(fd, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) >= size_bytes;
}

}  // namespace

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  if (this != &other) {
    Mapping old(std::exchange(base_, std::exchange(other.base_, nullptr)), size_bytes_);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, size_bytes_);
}

nessie::Result<SharedMemory> make_shared_memory(const char *name, std::size_t size_bytes, Peers peers) {
  auto size = round_to_pages(size_bytes);
  if (size < size_bytes || size == 0) {
    errno = EINVAL;
    return out_of_memory("allocate", size_bytes);
  }
  SharedMemory memory{nessie::Fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)), {}};
  if (!memory.fd || !grow(memory.fd, size)) return out_of_memory("allocate", size);
  memory.mapping = Mapping(map(memory.fd.get(), size, PROT_READ | PROT_WRITE), size);
  if (!memory.mapping.valid()) return out_of_memory("map", size);
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  // Kernels before 5.1 lack the seal against writing; peers that prove the credential are then trusted not to.
  if (peers == Peers::kMayWrite || ::fcntl(memory.fd.get(), F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) != 0)
    ::fcntl(memory.fd.get(), F_ADD_SEALS, seals);
  return memory;
}

void touch_pages(const Mapping &mapping) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < mapping.bytes().size(); at += page)
    (void)*static_cast<const volatile std::byte *>(mapping.base() + at);  // reading is enough: nobody else provides it
}

nessie::Result<Mapping> map_shared_memory(int fd, std::size_t size_bytes, Access access) {
  if (size_bytes == 0 || !is_safe_to_map(fd, size_bytes))
    return Error{Code::kBadMessage, "the peer's shared memory is missing, too small, or not sealed",
                 nessie::Scope::kPeer};
  void *base = map(fd, size_bytes, access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE);
  if (base == nullptr) return out_of_memory("map", size_bytes);
  return Mapping(base, size_bytes);
}

}  // namespace nnti
