// SPDX-License-Identifier: BSD-3-Clause
// An unmodified program's file, made once more from the stream that it is: docs/streams-formats.md.
#pragma once

#include "services/streams/sinks/form.hpp"
#include "services/streams/sinks/netcdf.hpp"
#include "services/streams/sinks/recording.hpp"
#include "services/streams/sinks/step_list.hpp"

#include <base/fd.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>

namespace nessie::streams::sinks {

/// Takes steps that have a source. Each is synced before it is safe; what was being written when its process ended is
/// written once more by who goes on.
class FileCopy : public Sink {
 public:
  /// `path` of the options is absolute. Makes no file before the first step. kBusy, kBadMessage, kInvalidArgument, kIo,
  /// as Recorder::open().
  static Result<std::unique_ptr<FileCopy>> open(const RecordOptions &options);

  std::uint64_t wanted() const override;
  /// kOutOfRange: its number is below wanted(). kBadMessage: it has no source. kUnsupported: as check_extends().
  /// Others: as NetcdfFile's; what Step::get() says, but for kNotFound: what is gone is filled.
  Status take(Step &step) override;
  Status finish() override;
  std::uint64_t missing() const override { return missing_ + behind_.size(); }
  /// How often the whole file had to be written anew.
  std::uint64_t rewrites() const { return rewrites_; }

 private:
  explicit FileCopy(RecordOptions options) : options_(std::move(options)) {}
  Status open_file();
  Status learn_form();
  Result<Form> form_for(const Step &step);
  Status take_file(Form form, Step &step);
  Status take_records(Form form, Step &step);
  Status write_anew(Form form, Step &step);
  Status make_file(NetcdfFile &file, const Form &form, Step &step);
  Status copy_old(NetcdfFile &to);
  Result<bool> change_attributes(const Form &form);
  Status write(NetcdfFile &file, const Form &form, Step &step);
  Status write_variable(NetcdfFile &file, const Form &form, int varid, Step &step);
  Status note_gone(NetcdfFile &file, const Form &form, int varid, const Step &step);
  std::int64_t records() const { return list_ && list_->last() ? list_->last()->records : 0; }
  std::int64_t first_record_of(const Step &step) const;
  std::int64_t records_with(const Form &form, const Step &step) const;

  RecordOptions options_;
  std::optional<NetcdfFile> file_;
  Fd fd_;  ///< of the same file: locked, and synced
  std::optional<StepList> list_;
  std::uint64_t next_ = 0;
  Form form_;             ///< of the file
  std::size_t room_ = 0;  ///< in its header, for attributes
  Form next_form_;
  std::shared_ptr<const std::vector<std::byte>> next_header_;  ///< of which next_form_ is
  std::set<std::string> behind_;  ///< fixed variables that were gone, or all of a file: they may come again
  std::uint64_t missing_ = 0, rewrites_ = 0;
};

}  // namespace nessie::streams::sinks
