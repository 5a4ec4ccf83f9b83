// SPDX-License-Identifier: BSD-3-Clause
// Mode auto: which new files are left to native PnetCDF, because staging cannot win with them.
//
// Design notes. What staging costs is a few messages for each file; what it saves grows with the data. So it is small
// files, one after the other, that may be better off natively. How much so depends on the machine, the number of
// processes and the file system: nobody can tell in advance, but it can be tried. When the last few files were small,
// the next ones are left native, to measure; whatever took less time is then done with the rest, and the other is tried
// again now and then. A large file ends all this.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace interpose {

class Policy {
 public:
  /// What became of a file that is closed now.
  struct Closed {
    bool was_staged = true;
    std::int64_t bytes = 0;  ///< that all processes wrote, about
    double seconds = 0;      ///< that this process spent in creating, defining and closing it
  };

  /// Why the next new file is left native; nothing: it is staged. By rank 0, for all.
  std::optional<std::string> leaves_next_native();
  void note(const Closed &file);

 private:
  struct Cost {
    std::uint64_t files = 0;
    double least_s = 0;  ///< of the last few
    void add(double seconds);
  };
  bool native_is_better() const { return native_.least_s < staged_.least_s; }

  Cost staged_, native_;  ///< of small files in a row
  std::uint64_t small_in_row_ = 0, chosen_ = 0;
};

/// Of this process.
Policy &policy();

/// What a file has taken so far of the time of the process that is to know.
struct Spent {
  bool counts = false;  ///< this process is to know
  double seconds = 0;
  std::string path;
};

/// Counts the time of one call.
class Stopwatch {
 public:
  explicit Stopwatch(Spent &spent) : spent_(spent), begin_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { spent_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch &) = delete;

 private:
  Spent &spent_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace interpose
