// SPDX-License-Identifier: BSD-3-Clause
// The ledger: what a staging server has promised and not yet kept, in a file that survives the server. Were the server
// killed, `nessie run` reads from it which bytes of which file were lost.
//
// Format, in the machine's byte order: a Head, then Records. A record names one variable of one file; its counters
// change in place. Whoever reads trusts nothing of it.
#pragma once

#include <services/staging/piece.hpp>

#include <nessie/result.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace staging {

class Ledger {
 public:
  /// A variable's place in the ledger; 0: none.
  using Slot = std::size_t;

  /// Creates the file. kIo with errno as the cause. kExists: another ledger that is in use is in this file.
  static nessie::Result<std::unique_ptr<Ledger>> create(const std::string &path);
  ~Ledger();
  Ledger(const Ledger &) = delete;

  /// 0 if the disk has no room for the ledger; staging goes on without. It is asked for more when something has been
  /// removed, and not at every call.
  Slot add(const std::string &path, const Variable &variable);
  void remove(Slot slot);
  /// Bytes that were answered for; bytes of them that are in the file; bytes that are in memory only, and the elements
  /// between which they lie.
  struct State {
    std::uint64_t acknowledged = 0, in_file = 0, dirty = 0;
    Interval dirty_bounds;
  };
  void update(Slot slot, const State &state);
  /// For as long as it lives, native PnetCDF moves what is in a file: if it is killed, any of that may be damaged.
  class Moving;

 private:
  struct Record;
  Ledger(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  bool grow();
  Record &record(Slot slot);

  int fd_;
  std::string path_;
  std::byte *mapped_ = nullptr;
  std::size_t records_ = 0;  ///< that the file has room for
  bool is_full_ = false;     ///< it could not grow when it was last tried, and nothing was removed since
  std::vector<Slot> idle_;

  friend nessie::Result<std::vector<FileReport>> read_ledger(const std::string &path);
};

class Ledger::Moving {
 public:
  /// `ledger` may be null.
  Moving(Ledger *ledger, const std::string &path);
  ~Moving();
  Moving(const Moving &) = delete;

 private:
  Ledger *ledger_;
  Slot slot_ = 0;
};

/// The files with bytes that are not in them, or that may be damaged, as a server that ended without a report left
/// them. Empty if it had kept all it promised, or died as it made its ledger. kNotFound; kBadMessage if it is no
/// ledger.
nessie::Result<std::vector<FileReport>> read_ledger(const std::string &path);

}  // namespace staging
