// SPDX-License-Identifier: BSD-3-Clause
// Memory for pages, within a budget: one mapping of huge pages, of which blocks of any size are taken, and given back
// to be used again while they are warm. It is given back to the kernel only when another pool of the process is short
// of memory, so that what is resident is what was once in use at the same time, and no more than the budget. The
// account is charged for what is resident.
#pragma once

#include <base/budget.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace staging {

class PageMemory {
 public:
  struct Block {
    std::byte *data = nullptr;
    std::size_t size_bytes = 0;
    explicit operator bool() const { return data != nullptr; }
  };

  /// `least_bytes`: the mapping has at least so many. std::bad_alloc: there is not so much address space.
  PageMemory(std::uint64_t budget_bytes, std::size_t least_bytes, nessie::Budget::Account &account);
  ~PageMemory();
  PageMemory(const PageMemory &) = delete;
  PageMemory &operator=(const PageMemory &) = delete;

  /// An empty block if the budget does not allow it now. While nothing at all is in use, there is always one that is no
  /// larger than `least_bytes`. Contents are indeterminate. `resident`: only of what was in use before, or made
  /// resident.
  Block allocate(std::size_t size_bytes, bool resident = false);
  void free(Block block);
  /// As allocate(), once and for all: what is in use besides is all that counts there.
  Block reserve(std::size_t size_bytes);

  /// The next part of the mapping that was never asked for here, at most `size_bytes`, to be made resident;
  /// empty at its end.
  std::span<std::byte> next_to_touch(std::size_t size_bytes);
  /// Makes memory resident, in use or not; changes nothing of what is there. Any thread.
  static void touch(std::span<std::byte> memory);

  /// Gives to the kernel, and to the account, what nobody uses now.
  void give_back_unused();

  std::uint64_t budget_bytes() const { return budget_; }
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t high_bytes() const { return high_; }

 private:
  using Free = std::map<std::byte *, std::size_t>;  ///< by address; no two of them meet
  using BySize = std::set<std::pair<std::size_t, std::byte *>>;
  bool map_arena(std::size_t size_bytes);
  bool charge(std::uint64_t resident_bytes, bool must);
  void cut(BySize::iterator found, std::size_t size_bytes);

  std::uint64_t budget_;
  std::byte *arena_ = nullptr;
  std::size_t arena_bytes_ = 0, touched_ = 0, resident_ = 0;
  Free free_;
  BySize by_size_;  ///< the same
  std::uint64_t used_ = 0, high_ = 0, reserved_ = 0;
  nessie::Budget::Account &account_;
  std::uint64_t charged_ = 0;
};

}  // namespace staging
