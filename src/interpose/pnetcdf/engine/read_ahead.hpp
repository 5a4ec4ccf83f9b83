// SPDX-License-Identifier: BSD-3-Clause
// Copies of what lies around small reads: each small read by itself would be a question to a server, and wake it up.
//
// Design notes. A copy is checked each time before it is used, by a look at memory: the counts of writes beside the
// servers' boards (services/staging/board.h) change whenever anybody of the run has put something to the file. Of a
// file that a program of the run has opened to write past PnetCDF there are no copies from then on, nor where there are
// no boards. Whoever writes from elsewhere is seen after a second at the latest.
// Fetching copies stops for a while when the last ones have not been used, or written over too soon.
#pragma once

#include <services/staging/client/client.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace interpose {

class ReadAhead {
 public:
  /// Reads elements of a variable from the servers. Native PnetCDF's code.
  using Fetch = std::function<int(const staging::VariableLayout &, staging::Interval, std::span<std::byte>)>;

  /// Puts what `item` asks for in its place, if it is small and in copies, or worth some, which are fetched. False: the
  /// servers must be asked, for all of it. `identity` is the file's; `last` the end of the elements that the variable
  /// has.
  bool answer(const staging::Item &item, const staging::FileIdentity &identity, std::int64_t last, const Fetch &fetch);

 private:
  struct Copy {
    int varid = 0;
    staging::Interval elements;
    std::vector<std::byte> data;
    std::uint32_t hits = 0;
  };
  void drop_stale(const staging::FileIdentity &identity);
  Copy *find(int varid, std::int64_t element);
  Copy *fetch_around(const staging::VariableLayout &layout, std::int64_t element, std::int64_t last,
                     const Fetch &fetch);
  Copy &place();
  void judge(const Copy &copy);

  std::vector<Copy> copies_;
  std::size_t latest_ = 0;             ///< the copy that answered last
  std::size_t oldest_ = 0;             ///< the one to be replaced next
  std::uint64_t made_at_ = 0;          ///< what had been counted when the copies were made
  std::chrono::nanoseconds until_{0};  ///< of the coarse clock: then they are too old
  std::uint32_t small_reads_ = 0;
  std::uint32_t plain_reads_ = 0, patience_ = 0;  ///< how many go without, after copies that were of no use
};

}  // namespace interpose
