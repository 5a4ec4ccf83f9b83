// SPDX-License-Identifier: BSD-3-Clause
// Registrars for tests.
#pragma once

#include "nnti/registration_cache/registration_cache.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace nnti::test {

inline constexpr std::uint64_t kAccess = 1;  ///< what tests want to do with their memory

/// Remembers what it registered; holds `room` registrations at most.
class CountingRegistrar final : public Registrar {
 public:
  class Entry final : public Registration {
   public:
    Entry(CountingRegistrar &owner, AddressRange range) : range(range), number(++owner.made), owner_(owner) {
      ++owner_.alive;
    }
    ~Entry() override {
      --owner_.alive;
      ++owner_.dropped;
    }
    const AddressRange range;
    const int number;

   private:
    CountingRegistrar &owner_;
  };

  nessie::Result<std::unique_ptr<Registration>> register_pages(AddressRange range, std::uint64_t) override {
    asked.push_back(range);
    if (during) during(range);
    if (range.overlaps(refused))
      return nessie::Error{nessie::Code::kIo, "this memory cannot be registered", nessie::Scope::kOperation, 0};
    if (alive >= room)
      return nessie::Error{nessie::Code::kNoMemory, "the domain is full", nessie::Scope::kOperation, 0};
    return std::unique_ptr<Registration>(std::make_unique<Entry>(*this, range));
  }
  bool follows_mapping() const override { return follows; }

  std::atomic<int> made{0}, alive{0}, dropped{0};
  int room = 1 << 20;
  bool follows = false;
  AddressRange refused;
  std::vector<AddressRange> asked;
  std::function<void(AddressRange)> during;  ///< what happens while it registers
};

/// Anonymous memory, with pages in front and behind that nobody may touch.
class Pages {
 public:
  explicit Pages(std::size_t count) : size_(count * page_bytes()) {
    base_ = static_cast<std::byte *>(
        ::mmap(nullptr, size_ + 2 * page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(at(0), size_, PROT_READ | PROT_WRITE);
  }
  ~Pages() { ::munmap(base_, size_ + 2 * page_bytes()); }
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

  std::byte *at(std::size_t page) const { return base_ + (page + 1) * page_bytes(); }
  std::span<std::byte> pages(std::size_t first, std::size_t count) const { return {at(first), count * page_bytes()}; }
  std::span<std::byte> all() const { return {at(0), size_}; }
  AddressRange range(std::size_t first, std::size_t count) const {
    return pages_of(reinterpret_cast<std::uintptr_t>(at(first)), count * page_bytes());
  }
  /// The pages are taken away, and others put there.
  void replace(std::size_t first, std::size_t count) const {
    ::munmap(at(first), count * page_bytes());
    (void)::mmap(at(first), count * page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0);
  }

 private:
  std::size_t size_;
  std::byte *base_;
};

}  // namespace nnti::test
