// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that a peer of this node has given, until they are taken.
#pragma once

#include "base/fd.hpp"

#include <nessie/result.hpp>

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace nnti {

/// Any thread.
class GivenDescriptors {
 public:
  /// Further ones are closed: whoever gives takes no more of the process's descriptors than this.
  static constexpr std::size_t kMost = 64;

  /// `descriptor` is invalid if this process had none left to receive it.
  void add(std::uint64_t key, nessie::Fd descriptor) {
    const std::lock_guard lock(mutex_);
    if (given_.size() < kMost) given_.try_emplace(key, std::move(descriptor));
  }

  /// The caller's from now on. kNotFound; kNoMemory: it came when this process had no descriptor left.
  nessie::Result<int> take(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = given_.find(key);
    if (found == given_.end())
      return nessie::Error{nessie::Code::kNotFound, "the peer has given no descriptor under this key"};
    nessie::Fd descriptor = std::move(found->second);
    given_.erase(found);
    if (descriptor) return descriptor.release();
    return nessie::Error{nessie::Code::kNoMemory,
                         "a descriptor was given, but this process has as many open as it may: raise `ulimit -n`",
                         nessie::Scope::kProcess};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, nessie::Fd> given_;
};

}  // namespace nnti
