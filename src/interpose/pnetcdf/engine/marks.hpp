// SPDX-License-Identifier: BSD-3-Clause
// What is complete of a file, for who looks on at it (staging's watcher). Root tells its home server, by a message that
// nobody waits for, at moments at which it knows what all ranks have sent: so no rank waits for another one for it.
//
// A record is complete when a collective put begins a later one, and all record variables were put since the one before
// was begun: of a program that writes all records of one variable, and then of the next, none is before a sync. A fixed
// variable is complete with a record, if it was put before that was begun; all of them are when the file is synced,
// defined anew, or closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace interpose {

/// What root knows of one file.
class Marks {
 public:
  /// A collective put to a fixed variable.
  void note_put(int varid);
  /// A collective put to a record variable.
  void note_record_put(int varid);
  /// A collective put goes up to that record; false: it is none that makes others complete.
  bool begin_records(std::int64_t before, std::int64_t records, std::size_t record_variables);
  /// All that was put is complete.
  void complete_all();
  /// Those that were put and are complete since it was asked last.
  std::vector<int> take_variables() { return std::exchange(complete_, {}); }
  std::int64_t records() const { return records_; }
  /// Records that a mark has said are complete.
  void note_marked(std::int64_t records);

 private:
  std::vector<int> put_, settled_, complete_, record_puts_;
  std::int64_t records_ = 0;
};

}  // namespace interpose
