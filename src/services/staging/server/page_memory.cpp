// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_memory.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace staging {

namespace {

constexpr std::size_t kUnit = 64, kPage = 4096, kHugePage = 2 << 20;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

// The arena is address space only: the kernel gives memory when it is first touched. Where there is not so much of it,
// the budget is smaller.
PageMemory::PageMemory(std::uint64_t budget_bytes, std::size_t least_bytes, nessie::Budget::Account &account)
    : budget_(budget_bytes), account_(account) {
  while (!map_arena(std::max(least_bytes, static_cast<std::size_t>(budget_))))
    if ((budget_ /= 2) < least_bytes) throw std::bad_alloc();
  free_.emplace(arena_, arena_bytes_);
  by_size_.emplace(arena_bytes_, arena_);
}

bool PageMemory::map_arena(std::size_t size_bytes) {
  const auto size = round_up(size_bytes, kHugePage);
  void *mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  arena_ = static_cast<std::byte *>(mapped);
  arena_bytes_ = size;
  ::madvise(arena_, arena_bytes_, MADV_HUGEPAGE);
  return true;
}

PageMemory::~PageMemory() { ::munmap(arena_, arena_bytes_); }

// The smallest that will do: what is free at the end, and cold, is the largest.
PageMemory::Block PageMemory::allocate(std::size_t size_bytes, bool resident) {
  const auto size = round_up(std::max<std::size_t>(size_bytes, 1), kUnit);
  if (used_ != reserved_ && used_ + size > budget_) return {};
  const auto found = by_size_.lower_bound({size, nullptr});
  if (found == by_size_.end()) return {};
  const Block block{found->second, size};
  const auto end = static_cast<std::size_t>(block.data + size - arena_);
  if (resident && end > resident_) return {};
  if (!charge(used_ + size, used_ == reserved_)) return {};
  resident_ = std::max(resident_, end);
  cut(found, size);
  used_ += size;
  high_ = std::max(high_, used_);
  return block;
}

PageMemory::Block PageMemory::reserve(std::size_t size_bytes) {
  const auto block = allocate(size_bytes);
  reserved_ += block.size_bytes;
  return block;
}

/// False: the process's budget has no room.
bool PageMemory::charge(std::uint64_t resident_bytes, bool must) {
  if (resident_bytes <= charged_) return true;
  const auto more = resident_bytes - charged_;
  if (must)
    account_.take(more);
  else if (!account_.try_take(more))
    return false;
  charged_ = resident_bytes;
  return true;
}

void PageMemory::give_back_unused() {
  for (const auto &[begin, size] : free_) {
    const auto first = round_up(static_cast<std::size_t>(begin - arena_), kPage);
    const auto end = static_cast<std::size_t>(begin - arena_) + size;
    if (first + kPage <= end) ::madvise(arena_ + first, end / kPage * kPage - first, MADV_DONTNEED);
  }
  resident_ = free_.empty() || free_.rbegin()->first + free_.rbegin()->second != arena_ + arena_bytes_
                  ? arena_bytes_
                  : static_cast<std::size_t>(free_.rbegin()->first - arena_);
  account_.give_back(charged_ - used_);
  charged_ = used_;
}

/// Takes the beginning of what is free. Without allocating: there may be no memory but this.
void PageMemory::cut(BySize::iterator found, std::size_t size_bytes) {
  auto sized = by_size_.extract(found);
  auto placed = free_.extract(sized.value().second);
  placed.key() += size_bytes;
  placed.mapped() -= size_bytes;
  if (placed.mapped() == 0) return;
  sized.value() = {placed.mapped(), placed.key()};
  by_size_.insert(std::move(sized));
  free_.insert(std::move(placed));
}

void PageMemory::free(Block block) {
  used_ -= block.size_bytes;
  auto *begin = block.data, *end = block.data + block.size_bytes;
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == end) {
    end += after->second;
    by_size_.erase({after->second, after->first});
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  free_.emplace(begin, end - begin);
  by_size_.emplace(end - begin, begin);
}

std::span<std::byte> PageMemory::next_to_touch(std::size_t size_bytes) {
  const auto size = std::min(size_bytes, arena_bytes_ - touched_);
  if (!charge(touched_ + size, false)) return {};
  touched_ += size;
  resident_ = std::max(resident_, touched_);
  return {arena_ + touched_ - size, size};
}

// Kernels before 5.14 do not know how: then it is made resident when it is used.
void PageMemory::touch(std::span<std::byte> memory) {
  (void)::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE);
}

}  // namespace staging
