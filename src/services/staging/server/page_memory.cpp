// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_memory.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace staging {

namespace {

constexpr std::size_t kPage = 4 << 10, kHugePage = 2 << 20;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

// The arena is address space only: the kernel gives memory when a frame is first touched. Where there is not so much of
// it, the budget is smaller.
PageMemory::PageMemory(std::uint64_t budget_bytes, std::size_t frame_bytes)
    : budget_(budget_bytes), frame_(round_up(frame_bytes, kPage)) {
  while (!map_arena())
    if ((budget_ /= 2) < frame_) throw std::bad_alloc();
}

/// Frames are whole pages of the kernel's, so that one can be given back without its neighbours.
bool PageMemory::map_arena() {
  const auto frames = std::max<std::size_t>(1, budget_ / frame_);
  arena_bytes_ = round_up(frames * frame_, kHugePage);
  void *mapped =
      ::mmap(nullptr, arena_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  arena_ = static_cast<std::byte *>(mapped);
  ::madvise(arena_, arena_bytes_, MADV_HUGEPAGE);
  return true;
}

PageMemory::~PageMemory() {
  for (auto *block : singles_) std::free(block);
  ::munmap(arena_, arena_bytes_);
}

// The system may have no memory for a single block; the arena is there.
PageMemory::Block PageMemory::allocate(std::size_t size_bytes) {
  const bool fits_frame = size_bytes <= frame_, is_small = size_bytes <= frame_ / 2;
  Block block = fits_frame && !is_small ? allocate_frame() : allocate_single(round_up(size_bytes, 64));
  if (!block && fits_frame) block = is_small ? allocate_frame() : allocate_single(frame_);
  used_ += block.size_bytes;
  high_ = std::max(high_, used_);
  return block;
}

PageMemory::Block PageMemory::allocate_frame() {
  if (!is_allowed(frame_)) return {};
  for (auto *list : {&warm_, &cold_}) {
    if (list->empty()) continue;
    Block block{list->back(), frame_};
    list->pop_back();
    return block;
  }
  if (arena_used_ + frame_ > arena_bytes_) return {};
  Block block{arena_ + arena_used_, frame_};
  arena_used_ += frame_;
  return block;
}

PageMemory::Block PageMemory::take_untouched() {
  const auto resident = used_ + (warm_.size() + 1) * frame_;
  if (arena_used_ + frame_ > arena_bytes_ || resident > budget_) return {};
  arena_used_ += frame_;
  return {arena_ + arena_used_ - frame_, frame_};
}

void PageMemory::add_warm(Block frame) {
  warm_.push_back(frame.data);
  release_idle_frames(0);  // what is in use may have grown meanwhile
}

void PageMemory::touch(Block block) {
  if (::madvise(block.data, block.size_bytes, MADV_POPULATE_WRITE) == 0) return;
  for (std::size_t at = 0; at < block.size_bytes; at += kPage) block.data[at] = {};  // kernels before 5.14
}

PageMemory::Block PageMemory::allocate_single(std::size_t size_bytes) {
  if (!is_allowed(size_bytes)) return {};
  release_idle_frames(size_bytes);
  auto *data = static_cast<std::byte *>(std::aligned_alloc(64, size_bytes));
  if (data != nullptr) singles_.insert(data);
  return {data, data == nullptr ? 0 : size_bytes};
}

void PageMemory::release_idle_frames(std::uint64_t bytes) {
  while (!warm_.empty() && used_ + warm_.size() * frame_ + bytes > budget_) {
    ::madvise(warm_.back(), frame_, MADV_DONTNEED);
    cold_.push_back(warm_.back());
    warm_.pop_back();
  }
}

void PageMemory::free(Block block) {
  used_ -= block.size_bytes;
  if (is_frame(block.data))
    warm_.push_back(block.data);
  else if (singles_.erase(block.data) != 0)
    std::free(block.data);
}

}  // namespace staging
