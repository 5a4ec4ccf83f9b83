// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <functional>

namespace staging {

Result<NcResult> Server::sync(Request &, const FileArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return unknown(args.file);
  await_what_was_sent(*file);
  PageOutcome synced;
  {
    const FileGate::Shared shared(file->gate);
    file->raise_num_records(args.num_records);
    const int failed = drainer_.flush_for_program(*file);
    if (const int error = file->take_error(); error != NC_NOERR) return NcResult{error};
    if (drainer_.fails_fast() && failed != NC_NOERR) return NcResult{failed};
    if (const int error = tell_records(*file, true); error != NC_NOERR) return NcResult{error};
    synced = sync_first(*file, &NativeFile::sync);
    if (synced.nc_error == NC_NOERR && !file->read_back) return NcResult{};
  }
  const FileGate::Alone alone(file->gate);
  const int error = finish_sync(*file, synced, &NativeFile::sync, true);
  const int untold = file->take_error();
  return NcResult{error != NC_NOERR ? error : untold};
}

PageOutcome Server::sync_natively(OpenFile &file, Sync sync, const std::function<int(NativeFile &)> &before) {
  return try_natively(file, [&](NativeFile &native) {
    int error = before ? before(native) : NC_NOERR;
    if (error == NC_NOERR) error = std::invoke(sync, native);
    if (error == NC_NOERR && file.read_back) file.read_back->note_synced();
    return error;
  });
}

/// A sync, unless one has failed before: then only sync_again() will do.
PageOutcome Server::sync_first(OpenFile &file, Sync sync) {
  return file.is_to_be_put_again ? PageOutcome{.nc_error = NC_EWRITE} : sync_natively(file, sync);
}

/// What is left to do when a sync has ended so. Who calls this has the file alone.
int Server::finish_sync(OpenFile &file, const PageOutcome &synced, Sync sync, bool tells_at_once) {
  const int error = synced.nc_error != NC_NOERR ? sync_again(file, synced, sync, tells_at_once) : NC_NOERR;
  return error == NC_NOERR && file.read_back ? look_back(file) : error;
}

/// What came of a native call.
PageOutcome Server::try_natively(OpenFile &file, const std::function<int(NativeFile &)> &call) {
  return on_io([&] {
    PageOutcome outcome{.nc_error = call(*file.native)};
    if (outcome.nc_error == NC_NOERR) return outcome;
    outcome.system_error = file.native->write_errno();
    return outcome;
  });
}

/// A native call that may be repeated. `tells_at_once`: a program waits for it that may want to be told at once.
int Server::insist(OpenFile &file, bool tells_at_once, const std::function<int(NativeFile &)> &call) {
  return drainer_.insist(file, tells_at_once, [&] { return try_natively(file, call); }).nc_error;
}

/// Has the header say how many records there are.
int Server::tell_records(OpenFile &file, bool tells_at_once) {
  const auto records = file.num_records, told = file.records_to_tell();
  const int error = insist(file, tells_at_once, [=](NativeFile &native) { return native.publish_records(told); });
  if (error == NC_NOERR) file.records_in_file = std::max(file.records_in_file, records);
  return error;
}

/// Suspends the fiber until what is in the file outlives a power failure. Who calls this has the file alone.
int Server::sync_to_disk(OpenFile &file) {
  return finish_sync(file, sync_first(file, &NativeFile::sync_to_disk), &NativeFile::sync_to_disk);
}

/// After a sync that has failed, of who cannot have the file alone.
void Server::sync_later(const File &file) {
  file->is_to_be_put_again = true;
  runtime_.spawn([this, file] {
    const FileGate::Alone alone(file->gate);
    if (file->is_to_be_put_again && !file->native->is_closed()) (void)sync_to_disk(*file);
  });
}

/// After a sync that has failed: with it the kernel forgets what it could not write, and the next one succeeds. So what
/// the file's journal has is put there once more, and `redo` carried out; where there is none it may be lost.
int Server::sync_again(OpenFile &file, PageOutcome failed, Sync sync, bool tells_at_once,
                       const std::function<int(NativeFile &)> &redo) {
  file.is_to_be_put_again = file.can_be_put_again();
  if (file.is_to_be_put_again) {
    failed = drainer_.insist(file, tells_at_once, [&] {
      const auto put = put_again(file);
      return put.nc_error != NC_NOERR ? put : sync_natively(file, sync, redo);
    });
    file.is_to_be_put_again = failed.nc_error != NC_NOERR;
    if (tells_at_once && drainer_.fails_fast()) return failed.nc_error;  // the next sync, or the close, does it again
  }
  file.remember(failed.nc_error, failed.system_error, true);
  return failed.nc_error;
}

/// Puts what the file's journal has into pages once more, and from there into the file.
PageOutcome Server::put_again(OpenFile &file) {
  const auto on_write = [&](const LoggedWrite &write, std::span<const std::byte> data) -> Status {
    if (write.pieces.empty()) return {};
    const auto checked = check_pieces(write.pieces, data.size(), file.shapes());
    if (!checked.ok()) return checked.error();
    put_pieces(file, write.pieces, data);
    for (const auto &part : checked->parts) file.take_back(*file.find(part.varid), part.bytes);
    return {};
  };
  const auto replayed = file.journal->replay(file.token, {on_write, {}});
  const int drained = drainer_.flush(file, PageState::kUrgent);
  if (!replayed.ok() || drained != NC_NOERR) return {.nc_error = NC_EWRITE, .is_final = true};
  const auto records = file.num_records;
  return try_natively(file, [=](NativeFile &native) { return native.write_header_again(records); });
}

}  // namespace staging
