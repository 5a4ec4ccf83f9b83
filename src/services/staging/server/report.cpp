// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <fmt/format.h>

namespace staging {

namespace {

constexpr std::size_t kMostReported = 4096;  // files of each kind

}  // namespace

Result<ReportResult> Server::report(Request &) { return report(); }

ReportResult Server::report() const {
  ReportResult r;
  r.bytes_pulled = statistics_.bytes_pulled, r.bytes_pushed = statistics_.bytes_pushed;
  r.bytes_drained = statistics_.bytes_drained, r.bytes_pending = drainer_.pending_bytes();
  r.bytes_read = statistics_.bytes_read;
  r.writes = statistics_.writes, r.reads = statistics_.reads;
  r.files = statistics_.files, r.clients = statistics_.clients;
  r.memory_high_bytes = drainer_.memory_high_bytes();
  r.busy_pull_s = statistics_.busy_pull_s, r.busy_drain_s = statistics_.busy_drain_s;
  r.first_write_s = statistics_.first_write_s, r.last_pull_s = statistics_.last_pull_s,
  r.last_drain_s = statistics_.last_drain_s;
  r.drained.assign(closed_.begin(), closed_.end());
  r.failures = failed_;
  for (const auto &[token, file] : files_)
    if (file->lost_anything()) r.failures.push_back(file->report());
  for (const auto &file : closing_)
    if (file->lost_anything()) r.failures.push_back(file->report());
  r.native = native_;
  r.left_native = left_native_, r.why_left = why_left_;
  if (more_native_ > 0) r.native.push_back(fmt::format("{} more files, says server {}", more_native_, options_.index));
  return r;
}

Result<NcResult> Server::note_native(Request &, const NativeNote &args) {
  if (args.is_choice) {
    ++left_native_;
    why_left_ = args.why;
    return NcResult{};
  }
  if (native_.size() < kMostReported)
    native_.push_back(args.path + ": " + args.why);
  else
    ++more_native_;
  if (board_) board_->note_native();
  return NcResult{};
}

void Server::note_closed(const File &file) {
  if (file->wrote_anything()) closed_.push_back(file->report());
  if (closed_.size() > kMostReported) closed_.pop_front();
  if (file->lost_anything()) note_failed(file->report());
}

/// What there is no room for is in one last report.
void Server::note_failed(FileReport report) {
  if (failed_.size() < kMostReported) return failed_.push_back(std::move(report));
  if (more_failed_++ == 0) failed_.emplace_back();
  auto &others = failed_.back();
  others.path = fmt::format("{} more files of server {}", more_failed_, options_.index);
  others.nc_error = report.nc_error, others.message = report.message;
  others.bytes_acknowledged += report.bytes_acknowledged, others.bytes_in_file += report.bytes_in_file;
}

}  // namespace staging
