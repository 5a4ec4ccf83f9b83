// SPDX-License-Identifier: BSD-3-Clause
// A stream in a netCDF file: docs/streams-formats.md.
#pragma once

#include "services/streams/sinks/recording.hpp"
#include "services/streams/sinks/step_file.hpp"

#include <base/fd.hpp>

#include <memory>
#include <optional>
#include <string>

namespace nessie::streams::sinks {

class FileCopy;

/// Writes steps to a file, and syncs each before it says that it is safe. What was killed in the middle of a step is
/// overwritten by the next one who appends. A file that has no room for a step, as an array has grown or is new, is
/// written anew beside the old one, PATH.new, and takes its place when that step is in it. Steps that are an unmodified
/// program's files become the same file; others are records, one each.
class Recorder : public Sink {
 public:
  /// Makes no file before the first step. kExists: there is one, and it is not to be continued. kBusy: another process
  /// writes it. kBadMessage: it is no such file. kInvalidArgument: it has another stream, or one that had the same
  /// name. kIo.
  static Result<std::unique_ptr<Recorder>> open(const RecordOptions &options);

  ~Recorder() override;

  std::uint64_t wanted() const override;
  /// Also kUnsupported: as widened(), or check_extends(). kOutOfRange: its number is below wanted(). kIo: the disk is
  /// full, or fails; the file is to be opened anew, to continue it, and has the steps before.
  Status take(Step &step) override;
  Status finish() override;
  std::uint64_t missing() const override;
  /// How often the whole file had to be written anew.
  std::uint64_t rewrites() const { return rewrites_; }

 private:
  explicit Recorder(RecordOptions options);
  Status open_file();
  Status write(Step &step);
  Status open_copy();
  Status begin_anew(Step &step);
  Result<StepFile> make_file(const std::string &path, Layout layout, Step &step);
  Status copy_steps(StepFile &to);
  Status commit(StepFile &file, const Fd &fd, std::uint64_t number);

  RecordOptions options_;
  std::optional<StepFile> file_;
  Fd fd_;  ///< of the same file: locked, and synced
  std::uint64_t rewrites_ = 0;
  std::unique_ptr<FileCopy> copy_;  ///< which it is instead, of a stream that is a program's files
};

}  // namespace nessie::streams::sinks
