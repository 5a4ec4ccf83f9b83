// SPDX-License-Identifier: BSD-3-Clause
#include "baselines.hpp"

#include "child.hpp"
#include "machine.hpp"
#include "timing.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

/// Memory of whole pages that is there already: touching it costs nothing any more.
class Pages {
 public:
  Pages(std::size_t size, int flags, int descriptor = -1) : size_(size) {
    void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (address == MAP_FAILED) return;
    data_ = static_cast<std::byte *>(address);
    std::memset(data_, 1, size);
  }
  Pages(const Pages &) = delete;
  ~Pages() {
    if (data_) munmap(data_, size_);
  }
  std::byte *data() const { return data_; }

 private:
  std::byte *data_ = nullptr;
  std::size_t size_;
};

/// Time of one transfer between `local` and `remote` of process `pid`; 0 if the kernel forbids it.
template <class Transfer>
double vm_time(Transfer transfer, pid_t pid, std::byte *local, std::byte *remote, std::uint64_t size) {
  auto once = [&](bool) {
    iovec here{local, size}, there{remote, size};
    return transfer(pid, &here, 1UL, &there, 1UL, 0UL);
  };
  if (once(false) != static_cast<ssize_t>(size)) return 0;
  return typical_us(transfers_per_batch(size), once);
}

void store(FiguresBySize &times, std::uint64_t size, double us) {
  if (us > 0) times[size] = us;
}

}  // namespace

Result<CopyTimes> copy_times(const std::vector<std::uint64_t> &sizes) {
  auto largest = *std::max_element(sizes.begin(), sizes.end());
  int memory = memfd_create("nessie-bench", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, static_cast<off_t>(largest)) != 0)
    return Error{Code::kNoMemory, "no shared memory for the baselines", {}, errno};
  Partner partner([&](int from_parent, int to_parent) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    Pages own(largest, MAP_PRIVATE | MAP_ANONYMOUS), shared(largest, MAP_SHARED, memory);
    auto *address = own.data();
    char done;
    return write_all(to_parent, std::as_bytes(std::span(&address, 1))) && ::read(from_parent, &done, 1) == 0 ? 0 : 1;
  });
  std::byte *remote = nullptr;
  bool ready = partner.read_value(remote) && remote;
  Pages shared(largest, MAP_SHARED, memory), local(largest, MAP_PRIVATE | MAP_ANONYMOUS);
  close(memory);
  if (!ready || !shared.data() || !local.data()) return Error{Code::kNoMemory, "no memory for the baselines"};
  Pin pin(0);
  CopyTimes times;
  for (auto size : sizes) {
    int calls = transfers_per_batch(size);
    times.memcpy_get[size] = typical_us(calls, [&](bool) { std::memcpy(local.data(), shared.data(), size); });
    times.memcpy_put[size] = typical_us(calls, [&](bool) { std::memcpy(shared.data(), local.data(), size); });
    store(times.process_vm_readv, size, vm_time(process_vm_readv, partner.pid(), local.data(), remote, size));
    store(times.process_vm_writev, size, vm_time(process_vm_writev, partner.pid(), local.data(), remote, size));
  }
  return times;
}

}  // namespace bench
