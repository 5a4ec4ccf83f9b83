// SPDX-License-Identifier: BSD-3-Clause
// When each record of a variable was written last. A program that appends writes each record once, so many calls after
// the one before: that is one run, however many records there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace staging {

/// A point in the order of a file's collective calls. Calls are counted anew each time that data mode begins.
using Moment = std::uint64_t;
inline constexpr Moment kAlwaysLater = ~Moment{0};

inline Moment moment_of(std::uint32_t definition, std::uint64_t call) {
  constexpr int kCallBits = 40;
  return (Moment{definition} << kCallBits) + std::min(call, (std::uint64_t{1} << kCallBits) - 1);
}

class WrittenRecords {
 public:
  /// Those from `begin` on, less than `end`, were written then. What was written later stays so.
  void note(std::int64_t begin, std::int64_t end, Moment when);
  /// The latest moment at which any of them was written, or a later one, where so many are written out of order that
  /// not all is known. 0: none was.
  Moment last(std::int64_t begin, std::int64_t end) const;
  std::size_t runs() const { return runs_.size(); }

 private:
  /// Records that follow each other, each written `step` after the one before.
  struct Run {
    std::int64_t end = 0;
    Moment first = 0, step = 0;
  };
  using Runs = std::map<std::int64_t, Run>;
  static Moment at(const Runs::value_type &run, std::int64_t record) {
    return run.second.first + static_cast<Moment>(record - run.first) * run.second.step;
  }
  static Moment latest(const Runs::value_type &run) { return at(run, run.second.end - 1); }
  void cut(std::int64_t record);
  void put(std::int64_t begin, std::int64_t end, Moment when);
  void forget_first();

  Runs runs_;
};

}  // namespace staging
