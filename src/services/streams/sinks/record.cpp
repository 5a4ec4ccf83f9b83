// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/record.hpp"

#include "services/streams/sinks/disk.hpp"
#include "services/streams/sinks/file_copy.hpp"

#include <base/log.hpp>
#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace nessie::streams::sinks {

Recorder::Recorder(RecordOptions options) : options_(std::move(options)) {}
Recorder::~Recorder() = default;

Result<std::unique_ptr<Recorder>> Recorder::open(const RecordOptions &options) {
  auto path = absolute(options.path);
  if (!path.ok()) return path.error();
  std::unique_ptr<Recorder> recorder(new Recorder(options));
  recorder->options_.path = *std::move(path);
  if (auto opened = recorder->open_file(); !opened.ok()) return opened.error();
  return recorder;
}

Status Recorder::open_file() {
  const auto &path = options_.path;
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return errno == ENOENT ? Status() : Status(cannot("look at", path));
  if (!options_.append)
    return Error{Code::kExists,
                 fmt::format("{} is there already: continue it with --append, or name another file", printable(path))};
  auto fd = open_locked(path);
  if (!fd.ok()) return fd.error();
  auto netcdf = NetcdfFile::open(path, true);
  auto file = netcdf.ok() ? StepFile::open(*std::move(netcdf)) : Result<StepFile>(netcdf.error());
  const bool is_its = file.ok() && is_same(file->layout().origin, options_.origin);
  if (!is_its && StepList::is_beside(path)) {  // otherwise what is beside is none of the file's
    if (file.ok()) (void)file->close();
    fd->reset();
    return open_copy();
  }
  if (!file.ok()) return Error{file.code(), fmt::format("{}: {}", printable(path), file.error().message)};
  if (!is_same(file->layout().origin, options_.origin)) return of_another(path, file->layout().origin, options_.origin);
  file_.emplace(*std::move(file));
  fd_ = *std::move(fd);
  return {};
}

Status Recorder::open_copy() {
  auto copy = FileCopy::open(options_);
  if (!copy.ok()) return copy.error();
  copy_ = *std::move(copy);
  return {};
}

std::uint64_t Recorder::missing() const { return copy_ ? copy_->missing() : 0; }

std::uint64_t Recorder::wanted() const {
  if (copy_) return copy_->wanted();
  return !file_ || file_->numbers().empty() ? 0 : file_->numbers().back() + 1;
}

Status Recorder::take(Step &step) {
  if (!copy_ && !file_ && step.source() != nullptr)
    if (auto opened = open_copy(); !opened.ok()) return opened;
  if (copy_) return copy_->take(step);
  if (step.number() < wanted())
    return Error{Code::kOutOfRange, fmt::format("step {} is in {} already", step.number(), printable(options_.path))};
  auto taken = write(step);
  if (taken.code() != Code::kIo) return taken;
  auto error = taken.error();
  error.message = fmt::format(
      "step {} is not in {}: {}. The steps before it are: continue the file, with --append, when "
      "it can be written again",
      step.number(), printable(options_.path), error.message);
  return error;
}

Status Recorder::write(Step &step) {
  if (!file_ || !file_->has_room(step)) return begin_anew(step);
  if (auto written = file_->write(step); !written.ok()) return written;
  return commit(*file_, fd_, step.number());
}

/// Data first, then the number that says that they are there: whatever is on the disk is true.
Status Recorder::commit(StepFile &file, const Fd &fd, std::uint64_t number) {
  if (auto given = file.sync(); !given.ok()) return given;
  if (auto synced = sync_file(fd, options_.path); !synced.ok()) return synced;
  if (auto marked = file.mark(number); !marked.ok()) return marked;
  if (auto given = file.sync(); !given.ok()) return given;
  return sync_file(fd, options_.path);
}

Status Recorder::begin_anew(Step &step) {
  auto layout = file_ ? widened(file_->layout(), step) : Result<Layout>(layout_of(options_.origin, step));
  if (!layout.ok()) return layout.error();
  if (file_) log::info("{} is written anew: step {} has no room in it", options_.path, step.number()), ++rewrites_;
  const auto beside = options_.path + ".new";
  auto fd = open_locked(beside, O_CREAT);
  if (!fd.ok()) return fd.error();
  auto file = make_file(beside, *std::move(layout), step);
  if (!file.ok()) return (void)::unlink(beside.c_str()), file.error();
  if (auto done = commit(*file, *fd, step.number()); !done.ok()) return (void)::unlink(beside.c_str()), done;
  if (auto removed = file_ ? Status() : StepList::remove(options_.path); !removed.ok())
    return (void)::unlink(beside.c_str()), removed;
  if (auto placed = put_in_place(beside, options_.path, file_.has_value()); !placed.ok())
    return (void)::unlink(beside.c_str()), placed;
  file_.emplace(*std::move(file));
  fd_ = *std::move(fd);
  return sync_folder_of(options_.path);
}

/// With the steps of the old file, and this one.
Result<StepFile> Recorder::make_file(const std::string &path, Layout layout, Step &step) {
  auto netcdf = NetcdfFile::create(path);
  if (!netcdf.ok()) return netcdf.error();
  auto file = StepFile::define(*std::move(netcdf), std::move(layout));
  if (!file.ok()) return file;
  if (auto copied = file_ ? copy_steps(*file) : Status(); !copied.ok()) return copied.error();
  if (auto written = file->write(step); !written.ok()) return written.error();
  return file;
}

Status Recorder::copy_steps(StepFile &to) {
  for (std::size_t record = 0; record < file_->numbers().size(); ++record) {
    auto step = FileStep::open(*file_, record);
    if (!step.ok()) return step.error();
    if (auto written = to.write(*step); !written.ok()) return written;
    if (auto marked = to.mark(step->number()); !marked.ok()) return marked;
  }
  return {};
}

Status Recorder::finish() {
  if (copy_) return copy_->finish();
  if (!file_) return {};
  auto closed = file_->close();
  file_.reset();
  return closed;
}

}  // namespace nessie::streams::sinks
