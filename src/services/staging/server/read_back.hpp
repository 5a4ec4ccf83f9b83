// SPDX-License-Identifier: BSD-3-Clause
// What was written to a file natively, and is yet to be read back. The I/O thread.
//
// Design notes. A variable's elements are cut into blocks; of each there is the checksum of what was written of it, a
// sum as a page's (page_sum.cpp). What is written over something takes its place. If a part of what is known of a block
// stays, that is read before, and has a checksum of its own from then on; or differs, if it is not as it was written.
#pragma once

#include <services/staging/server/native_file.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace staging {

/// A run of a variable's elements, for people.
std::string describe(const Variable &variable, Interval run);

class ReadBack {
 public:
  struct Run {
    std::int32_t varid = 0;
    Interval elements;
  };
  /// These runs, in their order, are about to be written, and whatever comes of it, are not as they were any more.
  void forget(NativeFile &file, const Variable &variable, std::span<const Interval> runs);
  /// A run of these has been written. `data`: in host byte order.
  void note(NativeFile &file, const Variable &variable, Interval run, std::span<const std::byte> data);
  /// All that has been noted so far is on the disk.
  void note_synced() { synced_ = noted_; }
  /// look_at_some() begins anew.
  void begin() { next_ = kFirst; }
  /// Reads some more of it. What is not as it was written, or cannot be read, goes to `differing`; what is on the disk
  /// is done with. False: that was all.
  bool look_at_some(NativeFile &file, std::vector<Run> &differing);
  void clear() { blocks_.clear(), differing_.clear(), runs_ = 0; }

 private:
  struct Block {
    IntervalSet known;
    std::uint32_t sum = 0;
    std::uint64_t number = 0;  ///< of what was written last
  };
  using Place = std::pair<std::int32_t, std::int64_t>;  // variable, block
  using Blocks = std::map<Place, Block>;
  static constexpr Place kFirst{0, 0};
  static constexpr std::size_t kMostRuns = 256 << 10;

  void forget(NativeFile &file, const Variable &variable, Blocks::iterator at, std::span<const Interval> runs);
  Blocks::iterator drop(Blocks::iterator at);
  void look_at(NativeFile &file, std::uint64_t synced);

  Blocks blocks_;
  std::size_t runs_ = 0;  ///< in all blocks
  std::uint64_t noted_ = 0, synced_ = 0;
  Place next_ = kFirst;
  std::map<std::int32_t, Variable> variables_;     ///< of which there is something
  std::map<std::int32_t, IntervalSet> differing_;  ///< by variable, yet to be told
};

}  // namespace staging
