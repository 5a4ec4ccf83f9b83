// SPDX-License-Identifier: BSD-3-Clause
// How many writes to a file have been carried out, by the collective call that they belong to. Processes send their
// parts of a call without waiting for each other; what must come after all parts says how many there are.
#pragma once

#include <staging.hpp>

#include <map>

namespace staging {

class WriteCount {
 public:
  WriteCount() = default;
  explicit WriteCount(const WritesBefore &settled) : settled_(settled) {}
  void add(std::uint64_t call, std::uint64_t writes = 1) {
    (call <= settled_.call ? settled_.writes : later_[call]) += writes;
  }

  /// What was counted: of all calls up to one, and of later ones.
  const WritesBefore &settled() const { return settled_; }
  const std::map<std::uint64_t, std::uint64_t> &later() const { return later_; }

  /// The same as has(), of somebody whose word counts for nothing.
  bool reached(const WritesBefore &before) const {
    auto writes = settled_.writes;
    for (auto at = later_.begin(); at != later_.end() && at->first <= before.call; ++at) writes += at->second;
    return writes >= before.writes;
  }
  /// True if all of `before` has been carried out.
  bool has(const WritesBefore &before) {
    if (before.call <= settled_.call) return settled_.writes >= before.writes;
    const auto end = later_.upper_bound(before.call);
    auto writes = settled_.writes;
    for (auto at = later_.begin(); at != end; ++at) writes += at->second;
    if (writes < before.writes) return false;
    settled_ = {before.call, writes};
    later_.erase(later_.begin(), end);
    return true;
  }

 private:
  WritesBefore settled_;                          ///< all of these calls are complete
  std::map<std::uint64_t, std::uint64_t> later_;  ///< call to writes
};

}  // namespace staging
