// SPDX-License-Identifier: BSD-3-Clause
// What is transferred, of every system alike, begins where a page begins: elsewhere a copy of 64 KiB takes up to a
// tenth more, and the kernel has one page more to look up.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace bench {

template <class T> struct PageAllocator {
  using value_type = T;
  static constexpr std::align_val_t kPage{4096};

  PageAllocator() = default;
  template <class U> PageAllocator(const PageAllocator<U> &) {}
  T *allocate(std::size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), kPage)); }
  void deallocate(T *memory, std::size_t) { ::operator delete(memory, kPage); }
  bool operator==(const PageAllocator &) const = default;
};

template <class T> using PageAligned = std::vector<T, PageAllocator<T>>;

}  // namespace bench
