// SPDX-License-Identifier: BSD-3-Clause
// What is known of each connection. Found as fast as in an array; what came and went takes next to no memory.
#pragma once

#include <nnti/nnti.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace nssi {

using nnti::PeerId;

/// Peers' ids are small, and counted up.
template <class T> class ByPeer {
 public:
  /// Null: nothing is known of it.
  T *find(PeerId peer) const {
    const auto number = peer.value / kPageSize;
    if (number >= pages_.size() || !pages_[number]) return nullptr;
    auto &entry = pages_[number]->entries[peer.value % kPageSize];
    return entry ? &*entry : nullptr;
  }
  /// In place of what was known of it.
  T &put(PeerId peer, T value) {
    const auto number = peer.value / kPageSize;
    if (number >= pages_.size()) pages_.resize(number + 1);
    if (!pages_[number]) pages_[number] = std::make_unique<Page>();
    auto &entry = pages_[number]->entries[peer.value % kPageSize];
    pages_[number]->known += entry ? 0 : 1;
    return entry.emplace(std::move(value));
  }
  void erase(PeerId peer) {
    if (find(peer) == nullptr) return;
    auto &page = pages_[peer.value / kPageSize];
    page->entries[peer.value % kPageSize].reset();
    if (--page->known == 0) page.reset();
  }
  /// Of which something is known that `is` right; value 0: none.
  template <class Is> PeerId find_if(Is is) const {
    for (std::uint64_t number = 0; number < pages_.size(); ++number)
      for (std::uint64_t i = 0; pages_[number] && i < kPageSize; ++i)
        if (const auto &entry = pages_[number]->entries[i]; entry && is(*entry)) return {number * kPageSize + i};
    return {};
  }
  void clear() { pages_.clear(); }

 private:
  static constexpr std::uint64_t kPageSize = 64;
  struct Page {
    std::array<std::optional<T>, kPageSize> entries;
    std::size_t known = 0;
  };
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace nssi
