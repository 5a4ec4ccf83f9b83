// SPDX-License-Identifier: BSD-3-Clause
// The program's open files.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace interpose {

/// The program's files by their ids: those that native PnetCDF gave the files or their mirrors, small integers, the
/// lowest free first. Where a mirror has got another one since, that one may be taken: then any that is free. Any
/// thread, each with files of its own.
class FileTable {
 public:
  /// A file that is to be used; nullptr if no open file has this id.
  File *find(int ncid);
  /// The file with this id, whether or not it can be used; nullptr if there is none.
  File *at(int ncid) const;
  /// Whether a file of this id, which is none of these, was made by functions of native PnetCDF that were reached past
  /// us.
  bool is_past_us(int ncid);
  /// The new id; or -1, and `file` stays the caller's, if the table is full (NC_ENFILE).
  int add(std::unique_ptr<File> &file);
  void remove(const File &file);
  std::vector<int> ids() const;
  bool is_full() const;
  void begin_in_child();

 private:
  std::mutex mutex_;                                        ///< of those who add and remove
  std::array<std::atomic<File *>, NC_MAX_NFILES> files_{};  ///< each owned
};

FileTable &files();

}  // namespace interpose
