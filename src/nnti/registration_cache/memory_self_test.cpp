// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/memory_self_test.hpp"

#include "nnti/registration_cache/address_range.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sched.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace nnti::self_test {

using nessie::Code;
using nessie::Error;
using nessie::Scope;
using nessie::Status;

namespace {

constinit std::atomic<std::uintptr_t> tested_page{0};
constinit std::atomic<unsigned> calls_seen{0};

/// The block whose free() is awaited.
constinit std::atomic<std::uintptr_t> tested_block{0};

/// A break that no kernel grants: asking for it changes nothing, whoever answers.
const std::uintptr_t kNoBreak = ~std::uintptr_t{0} - page_bytes() + 1;
constinit std::atomic<bool> tests_break{false};

std::uintptr_t address_in(const probe::SystemCall &call) { return call.arguments[call.number == SYS_shmat ? 1 : 0]; }

/// What the kernel might have answered.
long answer_to(const probe::SystemCall &call, std::uintptr_t page) {
  switch (call.number) {
    case SYS_mmap:
    case SYS_mremap: return static_cast<long>(page);
    case SYS_shmat:
    case SYS_shmdt: return -EINVAL;
    default: return 0;
  }
}

struct Trial {
  const char *name;
  void (*call)(void *page, std::size_t size_bytes);
};

constexpr Trial kTrials[] = {
    {"munmap", [](void *page, std::size_t size) { ::munmap(page, size); }},
    {"mmap",
     [](void *page, std::size_t size) {
       (void)::mmap(page, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
     }},
    {"mremap", [](void *page, std::size_t size) { (void)::mremap(page, size, size, MREMAP_MAYMOVE); }},
    {"mremap",
     [](void *page, std::size_t size) { (void)::mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page); }},
    {"madvise", [](void *page, std::size_t size) { ::madvise(page, size, MADV_DONTNEED); }},
    {"shmat", [](void *page, std::size_t) { ::shmat(-1, page, SHM_REMAP); }},
    {"shmdt", [](void *page, std::size_t) { ::shmdt(page); }},
    {"remap_file_pages", [](void *page, std::size_t size) { ::remap_file_pages(page, size, 0, 0, 0); }},
    {"syscall", [](void *page, std::size_t size) { ::syscall(SYS_munmap, page, size); }},
};

Error not_seen(const char *what) {
  return {Code::kUnsupported,
          fmt::format("calls of {} in this process are not seen (something else has taken them over)", what),
          Scope::kProcess};
}

Status try_each(std::byte *page) {
  for (const auto &trial : kTrials) {
    const auto before = calls_seen.load();
    trial.call(page, page_bytes());
    if (calls_seen.load() == before) return not_seen(trial.name);
  }
  return {};
}

/// libc notes what it is told is the break, so while one is being told nobody else's may move (see answers()).
Status try_brk() {
  const auto before = calls_seen.load();
  tests_break = true;
  (void)!::brk(reinterpret_cast<void *>(kNoBreak));
  tests_break = false;
  if (calls_seen.load() == before) return not_seen("brk");
  return {};
}

/// Whether this is the test's own call. Others wait until the test is over, but not for ever: the test itself may be
/// waiting for a lock of whoever has patched brk.
bool is_tested_break(const probe::SystemCall &call) {
  constexpr int kPatience = 100'000;
  if (call.arguments[0] == kNoBreak) return true;
  for (int i = 0; i < kPatience && tests_break.load(std::memory_order_relaxed); ++i) ::sched_yield();
  return false;
}

bool is_mapped(void *address) {
  unsigned char resident;
  const auto page = pages_of(reinterpret_cast<std::uintptr_t>(address), 1);
  return ::mincore(reinterpret_cast<void *>(page.begin), page.size_bytes(), &resident) == 0;
}

/// A block so large that malloc maps it, whatever it has learnt; free() unmaps it from within libc.
Status try_free() {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  void *volatile block = std::malloc(kBytes);
  if (block == nullptr) return {};  // nothing is lost: free() will not be seen to give back what there is not
  void *const address = block;
  const auto before = calls_seen.load();
  tested_block = reinterpret_cast<std::uintptr_t>(address);
  std::free(block);
  tested_block = 0;
  if (calls_seen.load() == before && !is_mapped(address))  // NOLINT(clang-analyzer-unix.Malloc): only asked about
    return not_seen("munmap within free()");
  return {};
}

}  // namespace

Status run(std::byte *page) {
  const int kept_errno = errno;
  tested_page = reinterpret_cast<std::uintptr_t>(page);
  auto status = try_each(page);
  tested_page = 0;
  if (status.ok()) status = try_free();
  if (status.ok()) status = try_brk();
  errno = kept_errno;
  return status;
}

void saw_free(std::uintptr_t block) noexcept {
  if (block == tested_block.load(std::memory_order_relaxed)) calls_seen.fetch_add(1);
}

bool answers(probe::SystemCall &call) noexcept {
  if (call.number == probe::kLoaderEvent) return false;
  if (call.number == SYS_brk && tests_break.load(std::memory_order_relaxed)) {
    if (is_tested_break(call)) calls_seen.fetch_add(1);
    return false;  // the kernel refuses by itself
  }
  const auto block = tested_block.load(std::memory_order_relaxed);
  const bool unmaps = call.number == SYS_munmap && block != 0;
  if (unmaps && pages_of(call.arguments[0], call.arguments[1]).covers(pages_of(block, 1))) saw_free(block);
  const auto page = tested_page.load(std::memory_order_relaxed);
  if (page == 0 || address_in(call) != page) return false;
  calls_seen.fetch_add(1);
  call.result = answer_to(call, page);
  return true;
}

}  // namespace nnti::self_test
