// SPDX-License-Identifier: BSD-3-Clause
// Memory for bulk data, which is registered once and lent again and again: fresh memory costs more than most transfers
// into it.
#pragma once

#include <nssi/nssi.hpp>

#include <memory>
#include <span>

namespace nssi {

class Block;

/// Lent by a runtime, which it must not outlive. Moves; goes back when dropped, by any thread.
class Memory {
 public:
  Memory() = default;
  /// What it holds is unspecified. Up to 192 MiB of what was given back are kept. kNoMemory. Any thread; in a pool's
  /// handler the fiber waits for the driver.
  static Result<Memory> borrow(Runtime &runtime, std::size_t size_bytes);
  Memory(Memory &&other) noexcept;
  Memory &operator=(Memory &&other) noexcept;
  ~Memory() { give_back(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  Memory(Core &core, std::shared_ptr<Block> block);
  void give_back();

  Core *core_ = nullptr;
  std::shared_ptr<Block> block_;
  std::span<std::byte> bytes_;
};

}  // namespace nssi
