// SPDX-License-Identifier: BSD-3-Clause
// The operations that change a file as a whole: open and close, definitions, sync.
#include <services/staging/server/server.hpp>

#include <base/log.hpp>

#include <fcntl.h>
#include <pnetcdf.h>
#include <time.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

/// Makes `opened` a file of the program's. NC_NOERR, or the native code if there is none.
int Server::add_file(Request &request, FileToken token, const std::string &path, NativeFile::Opened opened,
                     const FileHandle &handle, std::uint32_t processes) {
  if (!opened.file) return opened.nc_error;
  if (find(token)) return on_io([&] { return opened.file->abort(), NC_EEXIST; });  // opened twice at the same time
  auto file = std::make_shared<OpenFile>(runtime_, token, path, request.caller(), ledger_.get());
  file->identity = opened.file->identity();
  file->opened_s = seconds_now();
  file->was_given = handle.descriptor != 0;
  file->processes = std::max(processes, 1U);
  file->is_direct = options_.mode == Mode::kDirect;
  file->board = board_.get();
  file->has_one_server = options_.servers == 1;
  file->in_define_mode = opened.file->is_new();
  file->defined = !file->in_define_mode;
  file->native = std::move(opened.file);
  note_handle(*file);
  if (board_ && file->native->writable()) file->on_board = board_->enter(file->identity);
  if (file->native->is_new()) note_created(*file);
  files_.emplace(token, file);
  ++statistics_.files;
  // The program may have died while the file was opened.
  if (std::find(peers_.begin(), peers_.end(), request.caller()) == peers_.end()) peer_lost(request.caller());
  return NC_NOERR;
}

namespace {

constexpr std::chrono::milliseconds kWriteMoment{50};
constexpr std::chrono::milliseconds kLastWords{1000};  // what has been sent is read in less

/// Nothing: there are no descriptors left.
nessie::Fd duplicate(const nessie::Fd &file) { return nessie::Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)); }

/// Counts what is being opened, so that a shutdown waits for it.
class Opening {
 public:
  Opening(int &count, WaitQueue &ended) : count_(count), ended_(ended) { ++count_; }
  ~Opening() {
    --count_;
    ended_.notify_all();
  }

 private:
  int &count_;
  WaitQueue &ended_;
};

Error shutting_down() { return {Code::kRefused, "the staging server is shutting down: nessie run was told to end"}; }
Error no_descriptors() { return {Code::kNoMemory, "a staging server has no descriptors left"}; }
Error token_taken() { return {Code::kExists, "a file with this token is open: a fault of the client"}; }

}  // namespace

Result<NcResult> Server::create(Request &request, const CreateArgs &args) {
  if (finishing_) return shutting_down();
  if (find(args.file)) return token_taken();
  const Opening opening(opening_, closing_changed_);
  auto file = obtain_descriptor(request, args.path, args.handle, true);
  if (!file.ok()) return file.error();
  auto opened = on_io([&] { return NativeFile::create(std::move(*file), args.cmode, args.hints); });
  return NcResult{add_file(request, args.file, args.path, std::move(opened), args.handle, args.processes)};
}

Result<HeaderResult> Server::open(Request &request, const OpenArgs &args) {
  if (finishing_) return shutting_down();
  if (find(args.file)) return token_taken();
  const Opening opening(opening_, closing_changed_);
  auto descriptor = obtain_descriptor(request, args.path, args.handle, (args.omode & NC_WRITE) != 0);
  if (!descriptor.ok()) return descriptor.error();
  auto opened = on_io([&] { return NativeFile::open(std::move(*descriptor), args.omode, args.hints); });
  HeaderResult result;
  const int harmless = opened.file ? opened.nc_error : NC_NOERR;
  result.nc_error = add_file(request, args.file, args.path, std::move(opened), args.handle, args.processes);
  if (result.nc_error != NC_NOERR) return result;
  const auto file = find(args.file);
  if (file) result.nc_error = describe(*file, result, [] { return NC_NOERR; });
  if (file && result.nc_error != NC_NOERR) close_unused(file);
  if (result.nc_error == NC_NOERR) result.nc_error = harmless;
  return result;
}

Result<NcResult> Server::hold(Request &request, const OpenArgs &args) {
  if (finishing_) return shutting_down();
  auto file = obtain_descriptor(request, args.path, args.handle, (args.omode & NC_WRITE) != 0);
  if (!file.ok()) return file.error();
  if (std::ranges::find(peers_, request.caller()) == peers_.end()) return NcResult{};  // it died meanwhile
  auto spare = duplicate(*file);
  if (!spare) return no_descriptors();
  held_.insert_or_assign(args.file, Held{request.caller(), args.path, args.omode, args.hints, args.processes,
                                         std::move(*file), std::move(spare)});
  return NcResult{};
}

Status Server::release(Request &, const FileToken &token) {
  held_.erase(token);
  return {};
}

Result<NcResult> Server::attach(Request &request, const FileToken &token) {
  if (finishing_) return shutting_down();
  if (find(token)) return token_taken();
  const auto held = held_.find(token);
  if (held == held_.end() || !held->second.file)
    return Error{Code::kNotFound, "a file is to be attached that was not held: a fault of the client"};
  const Opening opening(opening_, closing_changed_);
  HeaderResult unused;
  auto given = std::move(held->second.file), spare = std::move(held->second.spare);
  const auto path = held->second.path;
  const auto processes = held->second.processes;
  auto opened = on_io([&, omode = held->second.omode, hints = held->second.hints] {
    spare.reset();
    return NativeFile::open(std::move(given), omode, hints);
  });
  if (!opened.file) hold_again(token, std::move(given));
  int error = add_file(request, token, path, std::move(opened), {}, processes);
  const auto file = find(token);
  if (error == NC_NOERR && file) error = describe(*file, unused, [] { return NC_NOERR; });
  if (error != NC_NOERR && file) close_unused(file);
  return NcResult{error};
}

/// Keeps what was attached, to be attached again, if the program still has it open.
void Server::hold_again(FileToken token, nessie::Fd file) {
  const auto held = held_.find(token);
  if (held == held_.end()) return;
  held->second.spare = duplicate(file);
  held->second.file = std::move(file);
}

/// Closes a file of which nothing is known but that it can be opened.
void Server::close_unused(const File &file) {
  file->ended = true;
  file->keep_clean(false);
  file->forget_clean();
  if (files_.erase(file->token) > 0) on_io([&] { return file->native->abort(); });
}

/// Does `first`, then reads the header for the clients, and the variables for this server: one task of the I/O thread,
/// since between two there may be a drain.
int Server::describe(OpenFile &file, HeaderResult &result, const std::function<int()> &first) {
  std::vector<Variable> variables;
  const int error = on_io([&] {
    if (const int failed = first(); failed != NC_NOERR) return failed;
    if (const int failed = file.native->describe(result); failed != NC_NOERR) return failed;
    return file.native->variables(variables);
  });
  if (error != NC_NOERR) return error;
  file.keeps_clean = !file.may_be_written_past();
  file.set_variables(drainer_.cache(), std::move(variables));
  shelf_.take(file);
  file.records_in_file = std::max(file.records_in_file, result.num_records);
  file.raise_num_records(result.num_records);
  return NC_NOERR;
}

Result<HeaderResult> Server::enddef(Request &, const EndDefArgs &args) {
  HeaderResult result;
  const auto file = find(args.file);
  if (!file) return HeaderResult{NC_EBADID, {}, 0, 0, {}};
  const FileGate::Alone alone(file->gate);
  file->writes = {};  // all are done; clients count anew
  file->arrived_in.clear();
  drainer_.flush(*file, PageState::kUrgent);  // an error is told by what comes next: definitions stay
  file->forget_clean();
  file->raise_num_records(args.num_records);
  result.nc_error = describe(*file, result, [&] { return file->native->end_define(args); });
  note_write(*file);
  file->in_define_mode = result.nc_error != NC_NOERR;
  file->defined = file->defined || !file->in_define_mode;
  return result;
}

Result<NcResult> Server::amend(Request &, const AmendArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  return NcResult{on_io([&] { return file->native->amend(args.definitions); })};
}

Result<NcResult> Server::fill_record(Request &, const FillRecordArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  drainer_.flush(*file, PageState::kUrgent);
  file->native->allow_records(args.record + 1);
  file->forget_clean();
  const int error = on_io([&] { return file->native->fill_record(args.varid, args.record); });
  note_write(*file);
  return NcResult{error};
}

Result<NcResult> Server::sync(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  await_what_was_sent(*file);
  const FileGate::Shared shared(file->gate);
  file->raise_num_records(args.num_records);
  drainer_.flush(*file, PageState::kUrgent);
  if (const int error = file->take_error(); error != NC_NOERR) return NcResult{error};
  return NcResult{tell_records(*file, &NativeFile::sync)};
}

/// Suspends the fiber until the writes have been carried out. False, and the file has lost data: a process died before
/// it had sent all of its own.
bool Server::await_writes(OpenFile &file, const WritesBefore &before) {
  auto progress = nessie::Clock::now();
  while (!file.writes.has(before)) {
    const auto status = file.wrote.wait(nessie::Deadline::in(kWriteMoment));
    if (status.code() == Code::kCancelled) return false;
    if (status.ok() || file.writing > 0) progress = nessie::Clock::now();
    const auto patience = peers_.empty() ? kLastWords : options_.client_timeout;
    if (nessie::Clock::now() - progress < patience) continue;
    if (!finishing_ && any_is_stopped(file)) {
      progress = nessie::Clock::now();
      continue;
    }
    nessie::log::error("{}: a process of the program ended, or stopped, before the servers had all that it wrote",
                       file.path);
    file.remember(NC_EWRITE);
    return false;
  }
  return true;
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
  const int error = tell_records(*file, &NativeFile::close);
  if (file->closed_at && others_like(*file).empty())
    on_io([&] { return file->native->date_back(*file->closed_at), 0; });
  if (others_like(*file).empty()) shelf_.put(*file);
  if (!file->in_define_mode) file->remember(error);  // otherwise it is what ending define mode has already answered
  note_closed(file);
  leave_closing(file);
}

// The I/O thread may be the last one to have the file: pages are this thread's.
void Server::leave_closing(const File &file) {
  file->keep_clean(false);
  file->forget_clean();
  drainer_.touch_for_readers();
  std::erase(closing_, file);
  closing_changed_.notify_all();
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

Result<NcResult> Server::close(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  files_.erase(args.file);
  closing_.push_back(file);
  file->raise_num_records(args.num_records);
  if (args.closing == Closing::kDurable || (args.closing == Closing::kIfSoon && is_soon_in_file(*file, args.after)))
    finish_close(file, PageState::kUrgent, args.after);
  else
    finish_close_later(file, args.after);
  return NcResult{file->take_error()};
}

Result<NcResult> Server::detach(Request &request, const FileArgs &args) {
  const auto file = find(args.file);
  FileArgs durable = args;
  durable.closing = Closing::kDurable;
  auto closed = close(request, durable);
  if (file) hold_again(args.file, file->native->release());
  return closed;
}

// A file that was never defined is left empty, for the program to delete; any other is closed as it is.
Result<NcResult> Server::abort(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  if (files_.erase(args.file) == 0) return NcResult{NC_EBADID};
  file->ended = true;
  closing_.push_back(file);
  drainer_.flush(*file, PageState::kUrgent);
  const int drained = file->take_error();
  const bool empties = file->native->is_new() && !file->created_over;
  const int error = on_io([&] { return empties ? file->native->close_and_empty() : file->native->abort(); });
  note_closed(file);
  leave_closing(file);
  return NcResult{drained != NC_NOERR ? drained : error};
}

/// Ends a file whose program is gone, in closing_.
void Server::finish_orphan(File file) {
  file->line->await_arrived();
  const FileGate::Alone alone(file->gate);  // it may be about to be defined
  if (file->defined) return drain_and_close(file, PageState::kUrgent);
  file->ended = true;
  on_io([&] { return file->created_over ? file->native->abort() : file->native->close_and_empty(); });
  leave_closing(file);
}

Result<NcResult> Server::settle(Request &, const SettleArgs &args) {
  const auto same = [&](const OpenFile &file) {
    return (args.identity.inode != 0 && file.identity == args.identity) || file.path == args.path;
  };
  if (args.to_write && board_) board_->note_beside(args.identity);
  for (const auto &[token, file] : files_)
    if (args.to_write && same(*file)) file->is_written_past = true;
  settle_files(same);
  return NcResult{};
}

}  // namespace staging
