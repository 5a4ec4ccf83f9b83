// SPDX-License-Identifier: BSD-3-Clause
// Which steps are in a file that says nothing of it itself: PATH.steps, beside it. docs/streams-formats.md.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <base/fd.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace nessie::streams::sinks {

/// Moves. Errors of all: kIo.
class StepList {
 public:
  struct Entry {
    std::uint64_t number = 0;           ///< of the step
    std::int64_t records = 0;           ///< that the file has since
    std::set<std::string> behind = {};  ///< variables that it has not as they were by then
    bool operator==(const Entry &) const = default;
  };

  static bool is_beside(const std::string &path);
  /// Of one that is none of the file's, if there is one.
  static Status remove(const std::string &path);
  /// Of a file with nothing in it; takes the place of one that is there.
  static Result<StepList> create(const std::string &path, const Origin &origin);
  /// What was being written when its process ended is not in it. kBadMessage: it is no such list.
  static Result<StepList> open(const std::string &path);

  const Origin &origin() const { return origin_; }
  /// Nothing: the file has none.
  const std::optional<Entry> &last() const { return last_; }
  /// Returns when it is on the disk. Can be called again after an error.
  Status add(const Entry &entry);

 private:
  StepList(std::string path, Fd fd, Origin origin) : path_(std::move(path)), fd_(std::move(fd)), origin_(origin) {}
  Status write(const std::string &line);

  std::string path_;
  Fd fd_;
  Origin origin_;
  std::optional<Entry> last_;
  std::int64_t end_ = 0;  ///< of what counts in it
};

}  // namespace nessie::streams::sinks
