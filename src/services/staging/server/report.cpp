// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <base/config.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace staging {

namespace {

constexpr std::size_t kMostReported = 4096;  // files of each kind

}  // namespace

Result<ReportResult> Server::report(Request &) { return report(); }

ReportResult Server::report() const {
  auto r = statistics_;
  r.bytes_pending = drainer_.pending_bytes(), r.memory_high_bytes = drainer_.memory_high_bytes();
  r.stuck = drainer_.stuck(), r.spill_bytes = drainer_.spill_bytes();
  for (const auto &file : closed_) r.drained.push_back(file.report);
  for (const auto &[token, file] : files_)
    if (file->lost_anything()) r.failures.push_back(file->report());
  for (const auto &file : closing_)
    if (file->lost_anything()) r.failures.push_back(file->report());
  if (more_native_ > 0) r.native.push_back(fmt::format("{} more files, says server {}", more_native_, options_.index));
  return r;
}

FileState Server::state_of(const OpenFile &file, FileStage stage) const {
  FileState state{file.report(), file.durability, stage, file.dirty_bytes() + file.arrived_bytes()};
  state.report.bytes_acknowledged += file.arrived_bytes();
  const auto trouble = drainer_.trouble_of(file);
  if (!file.lost_anything() && trouble)
    state.report.message = native_message(trouble->why.nc_error, trouble->why.system_error);
  return state;
}

Result<FilesResult> Server::files(Request &) {
  FilesResult r;
  for (const auto &[token, file] : files_)
    if (file->wrote_anything() || file->has_arrived()) r.files.push_back(state_of(*file, FileStage::kOpen));
  for (const auto &file : closing_)
    if (file->wrote_anything() || file->has_arrived()) r.files.push_back(state_of(*file, FileStage::kClosing));
  r.files.insert(r.files.end(), closed_.begin(), closed_.end());
  for (const auto &failure : statistics_.failures)
    if (std::ranges::none_of(closed_, [&](const auto &file) { return file.report == failure; }))
      r.files.push_back({failure, Durability::kInherited, FileStage::kClosed, 0});
  r.others = more_closed_;
  return r;
}

/// An account lives as long as a process, or a file, of its job does.
Status Server::belong(Request &request, const Text &job) {
  std::erase_if(jobs_, [](const auto &known) { return known.second.expired(); });
  auto account = jobs_[job].lock();
  if (!account) jobs_[job] = account = std::make_shared<Account>();
  accounts_[request.caller().value] = std::move(account);
  return {};
}

Result<ReportResult> Server::report_of(Request &, const Text &job) {
  const auto known = jobs_.find(job);
  const auto account = known != jobs_.end() ? known->second.lock() : nullptr;
  if (!account) return ReportResult{};
  auto r = account->counted;
  const auto add_failed = [&](const File &file) {
    if (file->job == account && file->lost_anything()) r.failures.push_back(file->report());
  };
  for (const auto &[token, file] : files_) add_failed(file);
  std::ranges::for_each(closing_, add_failed);
  return r;
}

/// Null: the caller belongs to no job.
std::shared_ptr<Account> Server::account_of(nssi::PeerId caller) const {
  const auto found = accounts_.find(caller.value);
  return found != accounts_.end() ? found->second : nullptr;
}

/// For this server, and for the caller's job.
void Server::count(nssi::PeerId caller, std::uint64_t ReportResult::*counter, std::uint64_t amount) {
  statistics_.*counter += amount;
  if (const auto account = account_of(caller)) account->counted.*counter += amount;
}

std::string Server::describe() const {
  auto text = fmt::format("server {} of {}; clients: {}, files open: {}, being closed: {}, on their way: {}",
                          options_.index, options_.servers, peers_.size(), files_.size(), closing_.size(),
                          nessie::format_size(drainer_.pending_bytes()));
  if (const auto spilled = drainer_.spill_bytes(); spilled > 0)
    text += fmt::format(", spill: {}", nessie::format_size(spilled));
  for (const auto &file : drainer_.stuck())
    text += fmt::format("; trying again: {}, {}, for {:.0f} s", file.path, file.message, file.tried_s);
  return text;
}

Result<NcResult> Server::note_native(Request &, const NativeNote &args) {
  marks_.note_native(args);
  if (args.is_choice) {
    ++statistics_.left_native;
    statistics_.why_left = args.why;
    return NcResult{};
  }
  if (statistics_.native.size() < kMostReported)
    statistics_.native.push_back(args.path + ": " + args.why);
  else
    ++more_native_;
  if (board_) board_->note_native();
  return NcResult{};
}

void Server::note_closed(const File &file) {
  if (file->wrote_anything()) closed_.push_back(state_of(*file, FileStage::kClosed));
  if (closed_.size() > kMostReported) {
    more_closed_ += closed_.front().report.nc_error == 0 ? 1 : 0;  // of the others there is the report of a failure
    closed_.pop_front();
  }
  if (!file->lost_anything()) return;
  note_failed(total_, file->report());
  if (file->job) note_failed(*file->job, file->report());
}

/// What there is no room for is in one last report.
void Server::note_failed(Account &account, FileReport report) const {
  if (board_) board_->note_failed();
  auto &failed = account.counted.failures;
  if (failed.size() < kMostReported) return failed.push_back(std::move(report));
  if (account.more_failed++ == 0) failed.emplace_back();
  auto &others = failed.back();
  others.path = fmt::format("{} more files of server {}", account.more_failed, options_.index);
  others.nc_error = report.nc_error, others.message = report.message;
  others.bytes_acknowledged += report.bytes_acknowledged, others.bytes_in_file += report.bytes_in_file;
}

}  // namespace staging
