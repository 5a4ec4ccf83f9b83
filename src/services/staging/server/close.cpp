// SPDX-License-Identifier: BSD-3-Clause
// Close and detach; also of a file whose program is gone.
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>
#include <time.h>

#include <algorithm>

namespace staging {

namespace {

constexpr std::chrono::milliseconds kLookForTrouble{50};

}  // namespace

Result<NcResult> Server::close(Request &, const FileArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return close_again(args);
  files_.erase(args.file);
  closing_.push_back(file);
  if (file->marked && !file->marked->is_detached) marks_.note_closing(*file->marked);
  file->raise_num_records(args.num_records);
  if (file->is_kept())
    if (auto kept = keep_closed(*file, args.after); !kept.ok()) return kept.error();
  int failed = NC_NOERR;
  if (args.closing == Closing::kDurable || (args.closing == Closing::kIfSoon && is_soon_in_file(*file, args.after)))
    failed = finish_close_for_program(file, args.after);
  else
    finish_close_later(file, args.after);
  const int error = file->take_error();
  return NcResult{error != NC_NOERR ? error : failed};
}

/// Of a file that was closed before this server was started again: whoever asks has had no answer.
Result<NcResult> Server::close_again(const FileArgs &args) {
  const auto file = find_closing(args.file);
  if (!file) return unknown(args.file);
  if (args.closing == Closing::kDurable) await_closed(file);
  return NcResult{file->take_error()};
}

Result<NcResult> Server::detach(Request &request, const FileArgs &args) {
  const auto file = find(args.file);
  if (file && file->marked) marks_.note_detached(*file->marked);
  FileArgs durable = args;
  durable.closing = Closing::kDurable;
  auto closed = close(request, durable);
  if (file) await_closed(file), hold_again(args.file, file->native->release());
  return closed;
}

/// Whether what the file still needs takes less than a twentieth of the time that its program has had since it opened
/// the file, or waited for one last. What was only read needs nothing that anybody waits for.
bool Server::is_soon_in_file(OpenFile &file, const WritesBefore &after) {
  constexpr double kShare = 0.05, kCautiousBytesPerSecond = 250e6, kWorthMeasuring = 0.01;
  if (!file.native->writable() || !file.writes.has(after) || file.has_arrived()) return false;
  const bool measured = statistics_.busy_drain_s > kWorthMeasuring;
  const auto rate =
      measured ? static_cast<double>(statistics_.bytes_drained) / statistics_.busy_drain_s : kCautiousBytesPerSecond;
  const auto now = seconds_now(), takes = static_cast<double>(file.dirty_bytes()) / rate;
  const bool soon = takes < kShare * (now - std::max(file.opened_s, last_waited_s_));
  if (soon) last_waited_s_ = now + takes;
  return soon;
}

/// The program goes on: for whoever compares times, the file is as old as its close.
void Server::finish_close_later(const File &file, const WritesBefore &after) {
  if (file->native->writable()) ::clock_gettime(CLOCK_REALTIME_COARSE, &file->closed_at.emplace());
  runtime_.spawn([this, file, after] { finish_close(file, PageState::kClosing, after); });
}

/// Until the file is closed, or, if the user wants that, something failed that is being tried again: its code.
int Server::finish_close_for_program(const File &file, const WritesBefore &after) {
  if (!drainer_.fails_fast()) return finish_close(file, PageState::kUrgent, after), NC_NOERR;
  runtime_.spawn([this, file, after] { finish_close(file, PageState::kUrgent, after); });
  const auto is_closing = [&] { return std::ranges::find(closing_, file) != closing_.end(); };
  std::optional<Trouble> trouble;
  while (is_closing() && !(trouble = drainer_.trouble_of(*file)))
    if (closing_changed_.wait(nessie::Deadline::in(kLookForTrouble)).code() == nessie::Code::kCancelled) break;
  return trouble ? trouble->why.nc_error : NC_NOERR;
}

/// Drains a file that is in closing_, and closes it natively.
void Server::finish_close(const File &file, PageState priority, const WritesBefore &after) {
  (void)await_writes(*file, after);
  const FileGate::Alone alone(file->gate);
  drain_and_close(file, priority);
}

/// Of a file that the caller has alone.
void Server::drain_and_close(const File &file, PageState priority) {
  file->ended = true;
  drainer_.flush(*file, priority);
  (void)tell_records(*file, false);
  if ((file->is_kept() && !file->lost_anything()) || file->read_back) file->remember(sync_to_disk(*file));
  const auto records = file->records_to_tell();
  const auto closed = try_natively(*file, [=](NativeFile &native) { return native.close(records); });
  if (file->is_kept()) end_keeping(file);
  if (file->closed_at && others_like(*file).empty())
    on_io([&] { return file->native->date_back(*file->closed_at), 0; });
  if (others_like(*file).empty()) shelf_.put(*file);
  if (!file->in_define_mode)
    file->remember(closed.nc_error,
                   closed.system_error);  // otherwise it is what ending define mode has already answered
  note_closed(file);
  leave_closing(file);
}

// The I/O thread may be the last one to have the file: pages are this thread's.
void Server::leave_closing(const File &file) {
  file->keep_clean(false);
  file->forget_clean();
  drainer_.touch_for_readers();
  end_marking(*file);
  std::erase(closing_, file);
  closing_changed_.notify_all();
}

/// Ends a file whose program is gone, in closing_.
void Server::finish_orphan(File file) {
  file->line->await_arrived();
  const FileGate::Alone alone(file->gate);  // it may be about to be defined
  if (file->defined) return drain_and_close(file, PageState::kUrgent);
  file->ended = true;
  on_io([&] { return file->created_over ? file->native->abort() : file->native->close_and_empty(); });
  keep_gone(*file);
  leave_closing(file);
}

}  // namespace staging
