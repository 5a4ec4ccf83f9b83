// SPDX-License-Identifier: BSD-3-Clause
// Looks on at the files that the programs of a run write, while the staging servers have them: which there are, what is
// complete of them, and the data, as they were then. Programs do not notice: nothing waits for who looks on, and
// nothing is kept for him; what was complete is where it is anyway, in a server's pages or in the file.
//
// Threads: any, several at once; next() by one at a time.
#pragma once

#include <services/staging/client/classic_header.hpp>

#include <base/clock.hpp>
#include <base/config.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace staging {

/// What has changed.
struct News {
  /// Each with its marks since, in their order; also such as have only become another stage, or have another header. A
  /// program may have the same file open more than once: each time it has a token of its own.
  std::vector<WatchedFile> files;
  std::vector<NativeNote> native;  ///< files that are native PnetCDF's now, and why
  /// The servers have been told to end: there are no more news. What was closed can still be read.
  bool is_over = false;
  bool is_empty() const { return files.empty() && native.empty() && !is_over; }
};

class Watcher {
 public:
  /// Connects to the servers that the settings name, as Client::connect() does, and counts as none of the program's
  /// processes. Errors as that one's.
  static nessie::Result<std::unique_ptr<Watcher>> connect(const nessie::Config &config, nessie::Deadline deadline);
  ~Watcher();

  int servers() const;
  /// What has changed since the last call; the first time, all that there is, which may come in several parts. Empty at
  /// the deadline, if nothing has. kPeerLost: a server died: its files, also those of which it had a part, cannot be
  /// followed any more, and each further call says so. kBusy: too many look on.
  nessie::Result<News> next(nessie::Deadline deadline);
  /// The header of a file that next() has told of, as it stands. kNotFound: the servers know the file no more, or it
  /// was changed by other hands since it was closed. kPeerLost, kTimedOut, kBadMessage.
  nessie::Result<std::shared_ptr<const ClassicHeader>> header(FileToken file, nessie::Deadline deadline);
  /// Gets a box of a variable (its place in the header), as it was by that mark, to `data`, in C order, in host byte
  /// order. Of a record variable the first dimension is the record. Waits for what was written by then and is on its
  /// way. kNotFound: some of it was written over since, or the file changed by other hands, or the servers know it no
  /// more: `data` are not to be used then. kOutOfRange: there is no such box by that mark. kInvalidArgument: another
  /// number of dimensions, or of bytes. kIo: some of the file could not be written, or not be read. kPeerLost,
  /// kTimedOut.
  nessie::Status read(FileToken file, const Mark &mark, int varid, const nessie::service::Box &box,
                      std::span<std::byte> data, nessie::Deadline deadline);

 private:
  struct Impl;
  explicit Watcher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace staging
