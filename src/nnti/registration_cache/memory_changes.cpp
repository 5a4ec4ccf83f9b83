// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/memory_changes.hpp"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

namespace nnti {

namespace {

using probe::SystemCall;

// Of kernels newer than the headers.
constexpr int kMadvCold = 20, kMadvPopulateRead = 22, kMadvPopulateWrite = 23;
constexpr int kProcessMadvise = 440;

/// Advice of which the kernel's documentation says that the pages and what they hold stay. What is not known counts as
/// a change.
bool advice_keeps_pages(int advice) {
  switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_WIPEONFORK:
    case MADV_KEEPONFORK:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case kMadvCold:
    case kMadvPopulateRead:
    case kMadvPopulateWrite: return true;
    default: return false;
  }
}

/// The kernel's break ends in the middle of a page, which it keeps.
AddressRange taken_by_brk(std::uintptr_t wanted) {
  const auto present = static_cast<std::uintptr_t>(probe::raw_call({SYS_brk, {}, 0}));
  if (wanted == 0 || wanted >= present) return {};
  return {pages_of(wanted - 1, 1).end, pages_of(present - 1, 1).end};
}

std::array<AddressRange, 2> taken_by_mremap(const SystemCall &call) {
  const auto &[old, old_size, new_size, flags, target, unused] = call.arguments;
  std::array<AddressRange, 2> taken{};
  const auto before = pages_of(old, old_size);
  const auto after = pages_of(old, new_size);
  if (old_size != 0 && (flags & MREMAP_MAYMOVE) != 0)
    taken[0] = before;
  else if (after.end < before.end)
    taken[0] = {after.end, before.end};
  if ((flags & MREMAP_FIXED) != 0) taken[1] = pages_of(target, new_size);
  return taken;
}

AddressRange taken_by_mmap(const SystemCall &call) {
  const bool replaces = (call.arguments[3] & MAP_FIXED) != 0;
  return replaces ? pages_of(call.arguments[0], call.arguments[1]) : AddressRange{};
}

}  // namespace

NESSIE_NO_TSAN bool may_change_pages(const probe::SystemCall &call) noexcept {
  switch (call.number) {
    case SYS_mmap: return (call.arguments[3] & MAP_FIXED) != 0;
    case SYS_munmap:
    case SYS_mremap:
    case SYS_madvise:
    case SYS_brk:
    case SYS_shmat:
    case SYS_shmdt:
    case SYS_remap_file_pages:
    case kProcessMadvise: return true;
    default: return false;
  }
}

std::array<AddressRange, 2> pages_changed_by(const SystemCall &call) noexcept {
  const auto &arguments = call.arguments;
  switch (call.number) {
    case SYS_munmap:
    case SYS_remap_file_pages: return {pages_of(arguments[0], arguments[1])};
    case SYS_mmap: return {taken_by_mmap(call)};
    case SYS_mremap: return taken_by_mremap(call);
    case SYS_brk: return {taken_by_brk(arguments[0])};
    case SYS_madvise:
      if (advice_keeps_pages(static_cast<int>(arguments[2]))) return {};
      return {pages_of(arguments[0], arguments[1])};
    case kProcessMadvise:
      if (advice_keeps_pages(static_cast<int>(arguments[3]))) return {};
      return {kAllAddresses};
    case SYS_shmat: return {(arguments[2] & SHM_REMAP) != 0 ? kAllAddresses : AddressRange{}};
    case SYS_shmdt:
    case probe::kLoaderEvent: return {kAllAddresses};
    default: return {};
  }
}

}  // namespace nnti
