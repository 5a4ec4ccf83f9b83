// SPDX-License-Identifier: BSD-3-Clause
// For tests: calls of this process that write to a file, or sync it, fail when they are told to.
#pragma once

#include <cstdint>
#include <string>

namespace staging::testing {

/// One at a time. Nothing fails any more when it has gone.
class FaultyDisk {
 public:
  enum class Call { kWrite, kSync };
  /// What is written to bytes [from, to) of a file, or a sync of it, fails with `error`, `times` of them; or, if it
  /// `turns_a_bit`, is written with another bit in byte `from`, and succeeds.
  struct Fault {
    Call call = Call::kWrite;
    int error = 0;
    int times = 1 << 30;
    std::int64_t from = 0, to = INT64_MAX;
    bool turns_a_bit = false;
  };
  FaultyDisk(const std::string &path, const Fault &fault);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk &) = delete;
  void heal();
  /// How many have failed, or been changed.
  int failed() const;
};

}  // namespace staging::testing
