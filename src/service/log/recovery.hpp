// SPDX-License-Identifier: BSD-3-Clause
// Where a log ended that somebody has left, and what of it counts.
//
// Design notes. What was synced is there, and after the end of a process all that was written; of what was written
// after the last sync, any part may be missing after a power failure. So the log goes up to the first block that is
// missing or not whole, and of which no block that counts says that it was synced (`synced`), nor the store that it was
// written (`written_before()`). What is missing before that is damage, and told of by whoever reads it (replay()). A
// segment that is not there was released, as each is on the disk before it is written to (store.hpp), and as it is
// released only when all before its end is synced. What lies behind the end is erased before anything is appended.
//
// That is right, as (1) a block is sealed with what was synced by then, so no mark is higher than what a sync has
// covered; (2) an acknowledged sync covers all before it, so nothing that is missing behind the highest mark that can
// be read was acknowledged, unless the blocks that had the higher marks are lost, too, which a disk that keeps what it
// has synced does not do; (3) what is found is a prefix of what was appended, as each block says where the one before
// it ended; (4) what was found is synced, and what was cut off is erased, before Log::open() ends, so no later reading
// comes to another end.
#pragma once

#include <nssi/nssi.hpp>
#include <service/interval_set.hpp>
#include <service/log/format.hpp>
#include <service/log/store.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace nessie::service {

/// Of a log's stream.
inline Interval interval_of(const LogRange &range) {
  return {static_cast<std::int64_t>(range.begin), static_cast<std::int64_t>(range.end)};
}

struct LogSegment {
  IntervalSet live;  ///< what nobody has released
  Lsn end = 0;       ///< of its last block
};

struct RecoveredLog {
  std::uint64_t id = 0;                          ///< of a log that has nothing in it: a new one
  Lsn end = 0;                                   ///< where it ended
  Lsn next = 0;                                  ///< where it goes on
  std::vector<log_format::BlockHeader> cut;      ///< blocks behind its end, to be erased
  std::map<std::uint64_t, LogSegment> segments;  ///< those that there are, by their numbers
};

/// Errors as the store's.
Result<RecoveredLog> recover_log(nssi::Runtime &runtime, const std::shared_ptr<LogStore> &store);

}  // namespace nessie::service
