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
  auto file = std::make_shared<OpenFile>(*runtime_, token, path, request.caller(), ledger_.get());
  file->identity = opened.file->identity();
  file->defined = !opened.file->is_new();
  file->native = std::move(opened.file);
  files_.emplace(token, file);
  ++statistics_.files;
  // The program may have died while the file was opened.
  if (std::find(peers_.begin(), peers_.end(), request.caller()) == peers_.end()) lost(request.caller());
  return NC_NOERR;
}

namespace {

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
  settle_path(args.path);
  auto opened = on_io([&] { return NativeFile::create(args); });
  return NcResult{take(request, args.file, args.path, std::move(opened))};
}

Result<HeaderResult> Server::open_file(Request &request, const OpenArgs &args) {
  if (finishing_) return shutting_down();
  if (find(args.file)) return token_taken();
  const Opening opening(opening_, closed_one_);
  settle_path(args.path);
  HeaderResult result;
  auto opened = on_io([&] { return NativeFile::open(args.path, args.omode, args.hints); });
  result.nc_error = take(request, args.file, args.path, std::move(opened));
  if (result.nc_error != NC_NOERR) return result;
  const auto file = find(args.file);
  if (file) result.nc_error = describe(*file, result);
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
  if (error == NC_NOERR && file) error = describe(*file, unused);
  return NcResult{error};
}

/// Reads the header for the clients, and the variables for this server.
int Server::describe(OpenFile &file, HeaderResult &result) {
  std::vector<Variable> variables;
  const int error = on_io([&] {
    const int first = file.native->describe(result);
    return first != NC_NOERR ? first : file.native->variables(variables);
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
  drainer_.flush(*file, PageState::kUrgent);
  if ((result.nc_error = file->take_error()) != NC_NOERR) return result;
  result.nc_error = on_io([&] { return file->native->end_define(args); });
  if (result.nc_error != NC_NOERR) return result;
  file->defined = true;
  result.nc_error = describe(*file, result);
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

/// Drains a file that is in closing_, and closes it natively.
void Server::finish_close(const File &file, PageState priority) {
  drainer_.flush(*file, priority);
  const auto records = file->num_records;
  file->remember(on_io([&] { return file->native->close(records); }));
  note_closed(file);
  std::erase(closing_, file);
  closed_one_.notify_all();
}

Result<NcResult> Server::close(Request &, const FileArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  if (files_.erase(args.file) == 0) return NcResult{NC_EBADID};
  closing_.push_back(file);
  file->num_records = std::max(file->num_records, args.num_records);
  if (args.durable != 0) finish_close(file, PageState::kUrgent);
  else runtime_->spawn([this, file] { finish_close(file, PageState::kClosing); });
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
  const FileGate::Alone alone(file->gate);
  if (files_.erase(file->token) == 0) return;
  closing_.push_back(file);
  if (file->defined) return finish_close(file, PageState::kUrgent);
  on_io([&] {
    file->native->forsake();
    return 0;
  });
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

// The same file may go by several names.
void Server::settle_path(const std::string &path) {
  if (files_.empty() && closing_.empty()) return;
  const auto identity = on_io([&] { return identify(path); });
  const auto same = [&](const File &file) { return file->path == path || (identity.inode != 0 && file->identity == identity); };
  for (const auto &[token, file] : std::map(files_))
    if (same(file)) drainer_.flush(*file, PageState::kUrgent);
  for (;;) {
    const auto found = std::find_if(closing_.begin(), closing_.end(), same);
    if (found == closing_.end()) return;
    drainer_.hasten(**found);
    closed_one_.wait();
  }
}

}  // namespace staging
