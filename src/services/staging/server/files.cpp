// SPDX-License-Identifier: BSD-3-Clause
// The operations that change a file as a whole: open and close, definitions, sync.
#include <services/staging/server/server.hpp>

#include <base/log.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

/// Makes `opened` a file of the program's; answers the native code.
int Server::take(Request &request, FileToken token, const std::string &path, NativeFile::Opened opened) {
  if (!opened.file) return opened.nc_error;
  auto file = std::make_shared<OpenFile>(runtime_, token, path, request.caller(), ledger_.get());
  file->identity = opened.file->identity();
  file->in_define_mode = opened.file->is_new();
  file->defined = !file->in_define_mode;
  file->native = std::move(opened.file);
  files_.emplace(token, file);
  ++statistics_.files;
  // The program may have died while the file was opened.
  if (std::find(peers_.begin(), peers_.end(), request.caller()) == peers_.end()) lost(request.caller());
  return NC_NOERR;
}

namespace {

constexpr std::chrono::milliseconds kWriteMoment{50};
constexpr std::chrono::milliseconds kLastWords{1000};  // what a program that is gone has sent is read in less

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
Error token_taken() { return {Code::kExists, "a file with this token is open: a fault of the client"}; }

}  // namespace

Result<NcResult> Server::create(Request &request, const CreateArgs &args) {
  if (finishing_) return shutting_down();
  if (find(args.file)) return token_taken();
  const Opening opening(opening_, closed_one_);
  auto opened = open_settled(args.path, [&] { return NativeFile::create(args); });
  return NcResult{take(request, args.file, args.path, std::move(opened))};
}

Result<HeaderResult> Server::open_file(Request &request, const OpenArgs &args) {
  if (finishing_) return shutting_down();
  if (find(args.file)) return token_taken();
  const Opening opening(opening_, closed_one_);
  HeaderResult result;
  auto opened = open_settled(args.path, [&] { return NativeFile::open(args.path, args.omode, args.hints); });
  result.nc_error = take(request, args.file, args.path, std::move(opened));
  if (result.nc_error != NC_NOERR) return result;
  const auto file = find(args.file);
  if (file) result.nc_error = describe(*file, result, [] { return NC_NOERR; });
  return result;
}

Result<NcResult> Server::attach(Request &request, const AttachArgs &args) {
  if (finishing_) return shutting_down();
  if (find(args.file)) return token_taken();
  const Opening opening(opening_, closed_one_);
  HeaderResult unused;
  auto opened = on_io([&] { return NativeFile::open(args.path, args.omode, args.hints); });
  int error = take(request, args.file, args.path, std::move(opened));
  const auto file = find(args.file);
  if (error == NC_NOERR && file) error = describe(*file, unused, [] { return NC_NOERR; });
  return NcResult{error};
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
  file.set_variables(drainer_.cache(), std::move(variables));
  file.num_records = std::max(file.num_records, result.num_records);
  return NC_NOERR;
}

Result<HeaderResult> Server::end_define(Request &, const EndDefArgs &args) {
  HeaderResult result;
  const auto file = find(args.file);
  if (!file) return HeaderResult{NC_EBADID, {}, 0, 0, {}};
  const FileGate::Alone alone(file->gate);
  file->writes = {};  // all are done; clients count anew
  drainer_.flush(*file, PageState::kUrgent);
  if ((result.nc_error = file->take_error()) != NC_NOERR) return result;
  result.nc_error = describe(*file, result, [&] { return file->native->end_define(args); });
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
  return NcResult{on_io([&] { return file->native->fill_record(args.varid, args.record); })};
}

Result<NcResult> Server::sync(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Shared shared(file->gate);
  file->num_records = std::max(file->num_records, args.num_records);
  drainer_.flush(*file, PageState::kUrgent);
  if (const int error = file->take_error(); error != NC_NOERR) return NcResult{error};
  const auto records = file->num_records;
  return NcResult{on_io([&] { return file->native->sync(records); })};
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
    nessie::log::error("{}: a process of the program ended, or stopped, before the servers had all that it wrote",
                       file.path);
    file.remember(NC_EWRITE);
    return false;
  }
  return true;
}

/// Suspends the fiber until all that has arrived for a file whose program is gone is in pages. What was given up before
/// it was begun never will be.
void Server::await_last_words(OpenFile &file) {
  runtime_.hasten_bulk();
  auto deadline = nessie::Deadline::in(kLastWords);
  while (file.has_arrived() && !deadline.passed()) {
    const auto status = file.wrote.wait(nessie::Deadline::in(kWriteMoment));
    if (status.code() == Code::kCancelled) return;
    if (status.ok() || file.in_hand > 0) deadline = nessie::Deadline::in(kLastWords);
  }
}

/// Drains a file that is in closing_, and closes it natively.
void Server::finish_close(const File &file, PageState priority, const WritesBefore &after) {
  (void)await_writes(*file, after);
  const FileGate::Alone alone(file->gate);
  file->ended = true;
  drainer_.flush(*file, priority);
  const auto records = file->num_records;
  const int error = on_io([&] { return file->native->close(records); });
  if (!file->in_define_mode) file->remember(error);  // otherwise it is what ending define mode has already answered
  note_closed(file);
  std::erase(closing_, file);
  closed_one_.notify_all();
}

Result<NcResult> Server::close(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  files_.erase(args.file);
  closing_.push_back(file);
  file->num_records = std::max(file->num_records, args.num_records);
  if (args.durable != 0)
    finish_close(file, PageState::kUrgent, args.after);
  else
    runtime_.spawn([this, file, after = args.after] { finish_close(file, PageState::kClosing, after); });
  return NcResult{file->take_error()};
}

Result<NcResult> Server::detach(Request &request, const FileArgs &args) {
  FileArgs durable = args;
  durable.durable = 1;
  return close(request, durable);
}

// As natively: a file that was never defined disappears, any other is closed as it is.
Result<NcResult> Server::abort(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  if (files_.erase(args.file) == 0) return NcResult{NC_EBADID};
  closing_.push_back(file);
  drainer_.flush(*file, PageState::kUrgent);
  const int drained = file->take_error();
  const int error = on_io([&] { return file->native->abort(); });
  note_closed(file);
  std::erase(closing_, file);
  closed_one_.notify_all();
  return NcResult{drained != NC_NOERR ? drained : error};
}

/// Ends a file whose program is gone.
void Server::abandon(File file) {
  if (files_.erase(file->token) == 0) return;
  closing_.push_back(file);
  await_last_words(*file);
  if (file->defined) return finish_close(file, PageState::kUrgent, {});
  const FileGate::Alone alone(file->gate);
  on_io([&] { return file->native->forsake(); });
  std::erase(closing_, file);
  closed_one_.notify_all();
}

Result<NcResult> Server::remove(Request &, const PathArgs &args) {
  settle_path(args.path);
  return NcResult{on_io([&] { return remove_natively(args.path); })};
}

Result<NcResult> Server::settle(Request &, const PathArgs &args) {
  settle_path(args.path);
  return NcResult{};
}

/// Opens a file when nothing of it, under whatever name, is left to drain here.
NativeFile::Opened Server::open_settled(const std::string &path, const std::function<NativeFile::Opened()> &open) {
  settle_files([&](const OpenFile &file) { return file.path == path; });
  std::vector<NativeFile::Identity> held;
  for (const auto &[token, file] : files_) held.push_back(file->identity);
  for (const auto &file : closing_) held.push_back(file->identity);
  bool other_name = false;
  auto opened = on_io([&] {
    other_name = std::find(held.begin(), held.end(), identify(path)) != held.end();
    return other_name ? NativeFile::Opened{} : open();
  });
  if (!other_name) return opened;
  settle_path(path);
  return on_io(open);
}

// The same file may go by several names.
void Server::settle_path(const std::string &path) {
  if (files_.empty() && closing_.empty()) return;
  const auto identity = on_io([&] { return identify(path); });
  settle_files(
      [&](const OpenFile &file) { return file.path == path || (identity.inode != 0 && file.identity == identity); });
}

/// Drains those that are open, waits for those that are closed to be in the file.
void Server::settle_files(const std::function<bool(const OpenFile &)> &same) {
  std::vector<File> open;
  for (const auto &[token, file] : files_)
    if (same(*file)) open.push_back(file);
  for (const auto &file : open) drainer_.flush(*file, PageState::kUrgent);
  for (;;) {
    const auto found = std::find_if(closing_.begin(), closing_.end(), [&](const File &file) { return same(*file); });
    if (found == closing_.end()) return;
    drainer_.hasten(**found);
    (void)closed_one_.wait();
  }
}

}  // namespace staging
