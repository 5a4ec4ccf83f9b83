// SPDX-License-Identifier: BSD-3-Clause
// Objects that keep their place and are reused; named by ids that never are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace nnti {

/// T has `std::uint64_t id` and reset(). An id is a generation above an index, so that a stale one finds nothing.
template <class T> class Slab {
 public:
  T &make() {
    if (free_.empty()) {
      objects_.push_back(std::make_unique<T>());
      free_.push_back(static_cast<std::uint32_t>(objects_.size() - 1));
      objects_.back()->id = objects_.size() - 1;
    }
    T &object = *objects_[free_.back()];
    free_.pop_back();
    object.id += kGeneration | kInUse;
    return object;
  }
  T *find(std::uint64_t id) const {
    const std::uint64_t index = id & kIndex;
    if (index >= objects_.size() || !(id & kInUse)) return nullptr;
    return objects_[index]->id == id ? objects_[index].get() : nullptr;
  }
  void erase(T &object) {
    object.reset();
    object.id &= ~kInUse;
    free_.push_back(static_cast<std::uint32_t>(object.id & kIndex));
  }
  template <class Visit> void for_each(Visit visit) const {
    for (std::size_t i = 0; i < objects_.size(); ++i)
      if (objects_[i]->id & kInUse) visit(*objects_[i]);
  }

 private:
  static constexpr std::uint64_t kIndex = 0x7fff'ffff, kInUse = 0x8000'0000, kGeneration = 0x1'0000'0000;
  std::vector<std::unique_ptr<T>> objects_;
  std::vector<std::uint32_t> free_;
};

}  // namespace nnti
