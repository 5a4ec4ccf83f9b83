// SPDX-License-Identifier: BSD-3-Clause
// Memory that the servers of this node map, for data that are copied before they are sent: the program's own memory is
// free at once, and a server finds the data even if the program has died meanwhile.
#pragma once

#include <nssi/nssi.hpp>

#include <map>
#include <optional>
#include <vector>

namespace nessie::service {

class CopyBuffers {
 public:
  /// All buffers together take at most `limit_bytes`, but there is always one.
  CopyBuffers(nssi::Runtime &runtime, std::size_t limit_bytes) : runtime_(runtime), limit_bytes_(limit_bytes) {}

  /// A buffer of at least `size_bytes`. Nothing: the limit, or the system's memory, is used up; give one back first.
  /// kNoMemory: there is none to give back either.
  nssi::Result<std::optional<nnti::RegisteredBuffer>> take(std::size_t size_bytes);
  void give_back(nnti::RegisteredBuffer buffer);

 private:
  void drop_idle(std::size_t wanted_bytes);

  nssi::Runtime &runtime_;
  const std::size_t limit_bytes_;
  std::size_t made_bytes_ = 0, taken_ = 0;
  std::map<std::size_t, std::vector<nnti::RegisteredBuffer>> idle_;  ///< by size
};

}  // namespace nessie::service
