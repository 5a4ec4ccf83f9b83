// SPDX-License-Identifier: BSD-3-Clause
// Memory for pages, within a budget. Blocks of one size (the most) come from one mapping and are used again while they
// are warm; smaller ones are allocated singly. What is resident never exceeds the budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace staging {

class PageMemory {
 public:
  struct Block {
    std::byte *data = nullptr;
    std::size_t size_bytes = 0;
    explicit operator bool() const { return data != nullptr; }
  };

  /// std::bad_alloc: there is no memory for a single frame.
  PageMemory(std::uint64_t budget_bytes, std::size_t frame_bytes);
  ~PageMemory();
  PageMemory(const PageMemory &) = delete;
  PageMemory &operator=(const PageMemory &) = delete;

  /// An empty block if the budget does not allow it now, or the system has no memory. While nothing at all is in use,
  /// there is always one that is no larger than a frame. Contents are indeterminate.
  Block allocate(std::size_t size_bytes);
  void free(Block block);

  /// A frame that was never in use, to be made resident ahead of its use and then given to add_warm(); nothing if there
  /// is none, or no budget for it.
  Block take_untouched();
  void add_warm(Block frame);
  /// Makes a block's memory resident. Any thread.
  static void touch(Block block);

  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t high_bytes() const { return high_; }

 private:
  bool map_arena();
  bool is_allowed(std::size_t size_bytes) const { return used_ == 0 || used_ + size_bytes <= budget_; }
  Block allocate_frame();
  Block allocate_single(std::size_t size_bytes);
  void release_idle_frames(std::uint64_t bytes);
  bool is_frame(const std::byte *data) const { return data >= arena_ && data < arena_ + arena_bytes_; }

  std::uint64_t budget_;
  const std::size_t frame_;
  std::byte *arena_ = nullptr;
  std::size_t arena_bytes_ = 0, arena_used_ = 0;  ///< frames below arena_used_ have been handed out once
  std::vector<std::byte *> warm_, cold_;          ///< free frames: resident; given back to the kernel
  std::unordered_set<std::byte *> singles_;       ///< blocks in use that are no frames
  std::uint64_t used_ = 0, high_ = 0;
};

}  // namespace staging
