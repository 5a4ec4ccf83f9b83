// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/record.hpp"

#include <base/log.hpp>
#include <base/printable.hpp>

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace nessie::streams::sinks {

namespace {

Error cannot(const char *what, const std::string &path) {
  return {Code::kIo, fmt::format("cannot {} {}: {}", what, printable(path), std::strerror(errno)), Scope::kOperation,
          errno};
}

/// The file itself, which nobody else writes meanwhile.
Result<Fd> open_locked(const std::string &path, int flags = 0) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666));
  if (!fd) return cannot("open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  return Error{Code::kBusy,
               fmt::format("another process writes {}: end it first, or write another file", printable(path)),
               Scope::kOperation, errno};
}

/// What netCDF-C takes for a path whatever is in it.
Result<std::string> absolute(const std::string &path) {
  std::error_code problem;
  const auto whole = std::filesystem::absolute(path, problem);
  if (problem || path.empty()) return Error{Code::kInvalidArgument, "a file needs a name"};
  return whole.lexically_normal().string();
}

}  // namespace

Status sync_folder_of(const std::string &path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  const Fd folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return cannot("sync the folder of", path);
  return {};
}

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
  if (!netcdf.ok()) return netcdf.error();
  auto file = StepFile::open(*std::move(netcdf));
  if (!file.ok()) return Error{file.code(), fmt::format("{}: {}", printable(path), file.error().message)};
  if (!is_same(file->layout().origin, options_.origin))
    return Error{
        Code::kInvalidArgument,
        fmt::format("{} has the stream '{}' of {}: name another file", printable(path), file->layout().origin.stream,
                    file->layout().origin.stream == options_.origin.stream ? "another run" : "that name")};
  file_.emplace(*std::move(file));
  fd_ = *std::move(fd);
  return {};
}

std::uint64_t Recorder::wanted() const { return !file_ || file_->numbers().empty() ? 0 : file_->numbers().back() + 1; }

Status Recorder::take(Step &step) {
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
  if (::fsync(fd.get()) != 0) return cannot("sync", options_.path);
  if (auto marked = file.mark(number); !marked.ok()) return marked;
  if (auto given = file.sync(); !given.ok()) return given;
  return ::fsync(fd.get()) == 0 ? Status() : Status(cannot("sync", options_.path));
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
  if (auto placed = put_in_place(beside); !placed.ok()) return (void)::unlink(beside.c_str()), placed;
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

/// The first file takes nobody's place.
Status Recorder::put_in_place(const std::string &beside) {
  const char *const from = beside.c_str(), *const to = options_.path.c_str();
  int failed = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, file_ ? 0 : RENAME_NOREPLACE);
  if (failed != 0 && errno == EINVAL) failed = ::rename(from, to);  // a file system that does not know how
  return failed == 0 ? Status() : Status(cannot("write", options_.path));
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
  if (!file_) return {};
  auto closed = file_->close();
  file_.reset();
  return closed;
}

}  // namespace nessie::streams::sinks
