// SPDX-License-Identifier: BSD-3-Clause
// Copies of what lies around small reads, of files that are open for reading only: each small read by itself would be a
// question to a server, and wake it up.
//
// Design notes. A copy is checked each time before it is used, by a look at memory: the servers' boards
// (services/staging/board.h) count whenever a file is opened to be written. If none has been since the copy was made,
// and this file was not open for writing then, nobody of the run can have written to it. Whoever writes to it from
// elsewhere is seen after a second at the latest. Where there are no boards, there are no copies.
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
  bool are_valid(const staging::FileIdentity &identity);
  Copy *find(int varid, std::int64_t element);
  Copy *fetch_around(const staging::VariableLayout &layout, std::int64_t element, std::int64_t last,
                     const Fetch &fetch);
  Copy &place();

  std::vector<Copy> copies_;
  std::size_t latest_ = 0;             ///< the copy that answered last
  std::size_t oldest_ = 0;             ///< the one to be replaced next
  std::uint64_t made_at_ = 0;          ///< what the boards had counted when the copies were made
  std::chrono::nanoseconds until_{0};  ///< of the coarse clock: then they are too old
  std::uint32_t small_reads_ = 0;
  std::uint32_t plain_reads_ = 0, patience_ = 0;  ///< how many go without, after copies that nobody used
};

}  // namespace interpose
