// SPDX-License-Identifier: BSD-3-Clause
// Files that outlive this server: what has been acknowledged of them, and is not in the file, is in its journal.
//
// Design notes. What is put into pages is noted afterwards, before it is answered; and the note is complete at the same
// instant at which the write counts. So at any moment the journal and the pages tell the same.
#include <services/staging/server/server.hpp>

#include <base/file.hpp>
#include <base/log.hpp>

#include <fmt/format.h>
#include <pnetcdf.h>

#include <sys/stat.h>
#include <algorithm>
#include <filesystem>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::uint64_t kWorthBulk = 256 << 10;  // a block of the log of their own
constexpr std::uint64_t kSegmentsOfLog = 8;      // at least, until what is in it is put into the files
/// With what is around it, a whole number of these fits a segment.
constexpr std::uint64_t kMostGroupBytes = (1 << 20) - (32 << 10);

Error not_as_sent() { return {Code::kBadMessage, "data of a write are not as they were sent"}; }

}  // namespace

/// A server without a place for a log keeps nothing.
Durability Server::durability_of(Durability asked, const std::string &path) const {
  if (!may_be_kept()) return Durability::kMemory;
  return asked == Durability::kInherited ? options_.durability.of(path) : asked;
}

/// Where nobody keeps a second copy, files are logged; until there is one again, if there was one before.
Result<Journal *> Server::journal_of(OpenFile &file) {
  if (file.durability == Durability::kReplicated) {
    auto status = open_replicated(nessie::Deadline::in(options_.client_timeout));
    if (has_copies()) return replicated_.journal.get();
    if (status.code() == Code::kUnsupported) return status.error();
    if (!status.ok()) {
      nessie::log::warning("{}: no other server keeps a second copy of it now ({}); it is logged in {} instead",
                           file.path, status.error().message, options_.log_path);
      file.durability = Durability::kLogged;
    }
  }
  if (auto status = open_logged(); !status.ok()) return status.error();
  return logged_.get();
}

Status Server::open_logged() {
  if (logged_) return {};
  const FileGate::Alone alone(opening_logged_);
  if (logged_) return {};
  nessie::service::DiskStoreOptions store{.directory = options_.log_path};
  store.segment_bytes = std::min(store.segment_bytes, options_.log_bytes / kSegmentsOfLog);
  auto opened = Journal::open(runtime_, budget_, store, {.crowded_bytes = options_.log_bytes});
  if (!opened.ok()) return opened.error();
  logged_ = *std::move(opened);
  return {};
}

std::uint64_t Server::client_of(nssi::PeerId caller) const {
  const auto found = clients_.find(caller.value);
  return found != clients_.end() ? found->second : 0;
}

/// Who has left, or died, does not come again.
void Server::forget_client(nssi::PeerId peer) {
  const auto id = client_of(peer);
  const auto known = returning_.find(id);
  clients_.erase(peer.value);
  if (known == returning_.end() || is_recovering_) return;
  known->second.who.pid = -1;
  for (auto *journal : {logged_.get(), replicated_.journal.get()})
    if (journal != nullptr && journal->forgets(known->first)) note_again(*journal, id);
  returning_.erase(id);
}

/// Null: it is none that would come again.
Server::Returning *Server::returning(nssi::PeerId caller) {
  const auto found = returning_.find(client_of(caller));
  return found != returning_.end() ? &found->second : nullptr;
}

/// From now on the file outlives this server, if that is asked for. One that cannot is closed.
Status Server::keep_file(const File &file, const OpenArgs &args, bool is_created, nssi::PeerId owner) {
  if (!file->is_kept()) return {};
  auto status = begin_keeping(*file, args, is_created, owner);
  if (!status.ok()) close_unused(file);
  return status;
}

Status Server::begin_keeping(OpenFile &file, const OpenArgs &args, bool is_created, nssi::PeerId owner) {
  const auto journal = journal_of(file);
  if (!journal.ok()) return journal.error();
  gone_.erase(file.token);
  for (auto *other : {logged_.get(), replicated_.journal.get()})
    if (other != nullptr && other != *journal && other->has(file.token)) (void)other->note_moved(file.token);
  file.journal = *journal;
  auto &logged = file.logged;
  logged.file = file.token, logged.path = file.path, logged.is_created = is_created, logged.mode = args.omode;
  logged.hints = args.hints, logged.identity = file.identity, logged.owner = client_of(owner);
  logged.born_ns = file.native->born_ns();
  logged.processes = file.processes, logged.durability = file.durability;
  (void)note_file(file, *file.journal);  // await_kept() tells
  if (auto *client = returning(owner)) keep_client(file, *client);
  if (file.durability == Durability::kReplicated && file.journal == logged_.get()) renew_replicated();
  return await_kept(file);
}

Status Server::note_file(OpenFile &file, Journal &journal) {
  return journal.note_file(file.token, [&] {
    auto logged = file.logged;
    logged.is_defined = file.defined;
    logged.definitions = file.definitions, logged.num_records = file.num_records;
    logged.settled = file.writes.settled();
    for (const auto &[call, writes] : file.writes.later()) logged.later.push_back({call, writes});
    return logged;
  });
}

/// Also what a new file was defined as so far.
Status Server::note_all(OpenFile &file, Journal &journal) {
  auto noted = note_file(file, journal);
  for (const auto &[definition, nc_error] : file.made) {
    if (noted.ok()) noted = journal.note(definition);
    if (noted.ok()) noted = journal.note(LoggedDefined{file.token, definition.args.number, nc_error});
  }
  return noted;
}

void Server::keep_client(OpenFile &file, Returning &client) {
  if (!file.journal->has_noted(client.who.client, file.token)) note_again(*file.journal, client.who.client);
}

/// What was done to a file is told by the journal that has the file, or is about to: it is there before this is.
void Server::note_again(Journal &journal, std::uint64_t id, const OpenFile *coming) {
  LoggedClient who;
  const auto look = [&] {
    const auto found = returning_.find(id);
    if (found == returning_.end()) return who;  // it has left since
    const auto &done = found->second.done;
    who = found->second.who;
    who.answered = done.answered();
    who.done.clear();
    for (const auto &[number, token] : done.later()) {
      auto file = find(token);
      if (!file) file = find_closing(token);
      if (!file || file.get() == coming || file->journal == &journal) who.done.push_back(number);
    }
    return who;
  };
  if (returning_.contains(id)) (void)journal.note_client(id, look);  // await_kept() tells
}

void Server::note_clients(Journal &journal, const OpenFile *coming) {
  std::vector<std::uint64_t> ids;
  for (const auto &[id, client] : returning_)
    if (coming != nullptr || journal.knows(id)) ids.push_back(id);
  for (const auto id : ids) note_again(journal, id, coming);
}

/// Of a file that the caller has alone: `note`, which may be called twice, notes something of it, and the fiber is
/// suspended until that outlives this server.
Status Server::keep(OpenFile &file, const std::function<void(Journal &)> &note) {
  if (!file.is_kept()) return {};
  for (bool was_moved = false;; was_moved = true) {
    note(*file.journal);
    auto written = file.journal->await_written();
    shorten(*file.journal);
    if (written.ok()) return {};
    const bool may_be_moved = !was_moved && file.durability == Durability::kReplicated;
    if (may_be_moved) renew_replicated();
    if (!may_be_moved || !open_logged().ok() || !move(file, *logged_)) return keep_in_file(file, written);
  }
}

Status Server::keep_definition(OpenFile &file, const LoggedDefinition &definition) {
  return keep(file, [&](Journal &journal) { (void)journal.note(definition); });
}

/// Native PnetCDF moves the data of a file whose definitions change, and when it is interrupted the file is neither as
/// it was nor as it is to be. A copy of it as it was; empty: none is needed, or there is no room for one.
std::string Server::keep_undo(OpenFile &file) {
  if (!file.is_kept() || !file.defined || !may_be_kept()) return {};
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(options_.log_path).parent_path(), ignored);
  (void)::mkdir(options_.log_path.c_str(), 0700);  // as a log makes it
  auto undo = undo_path(options_.log_path, file.token);
  if (on_io([&] { return file.native->save_to(undo); }) == NC_NOERR) return undo;
  nessie::log::warning(
      "{}: there is no room in {} for a copy of it: if this server is killed while the definitions "
      "change, the file is what native PnetCDF leaves then",
      file.path, options_.log_path);
  return {};
}

std::string Server::undo_path(const std::string &folder, FileToken token) {
  return fmt::format("{}/undo.{:016x}", folder, token);
}

/// Where there is no log, nobody goes on with what there are copies for.
void Server::remove_undo() const {
  std::error_code ignored;
  if (may_be_kept() && !Journal::is_in(options_.log_path)) std::filesystem::remove_all(options_.log_path, ignored);
}

Status Server::keep_defined(OpenFile &file, const LoggedDefinition &definition, int nc_error) {
  const auto number = definition.args.number;
  file.definitions = std::max(file.definitions, number);
  file.defined_as = nc_error;
  if (!definition.is_amend && nc_error == NC_NOERR)
    file.made.clear();
  else if (file.is_kept() && !file.defined)
    file.made.push_back({definition, nc_error});
  if (!file.is_kept()) return {};
  note_fill_modes(file.logged, definition.args.definitions);
  const auto *before = file.journal;
  return keep(file, [&](Journal &journal) {
    if (&journal != before) (void)journal.note(definition);
    (void)journal.note(LoggedDefined{file.token, number, nc_error});
  });
}

/// A record was filled natively. It is not filled once more by whoever goes on after this server: other servers may
/// have written to it since.
Status Server::keep_filled(OpenFile &file, const FillRecordArgs &args) {
  const auto fill = [&](NativeFile &native) { return native.fill_record(args.varid, args.record); };
  const auto synced = sync_first(file, &NativeFile::sync_to_disk);
  const bool is_on_disk =
      synced.nc_error == NC_NOERR || sync_again(file, synced, &NativeFile::sync_to_disk, false, fill) == NC_NOERR;
  return keep(file, [&](Journal &journal) {
    if (is_on_disk && !file.lost_anything()) (void)journal.note_filled(file.token);
  });
}

/// What the journal says of a write, but for its pieces.
LoggedWrite Server::note_of(nssi::PeerId caller, OpenFile &file, const TransferArgs &args) {
  if (auto *client = returning(caller)) keep_client(file, *client);
  LoggedWrite write;
  write.file = file.token, write.client = client_of(caller);
  write.number = args.number, write.answered = args.answered, write.call = args.call;
  return write;
}

/// With the last note of it: whoever sends it again has had no answer.
void Server::note_done(nssi::PeerId caller, const TransferArgs &args) {
  auto *client = returning(caller);
  if (client != nullptr && args.number != 0) client->done.add(args.number, args.answered, args.file);
}

/// Puts what a write has into pages and into the journal, a part at a time. With the last part the write counts. What
/// the journal has no room for goes right to the file.
Status Server::keep_in(Arriving &arriving, OpenFile &file, const Asked &asked) {
  const auto &request = arriving.request;
  const auto &args = arriving.args;
  auto write = note_of(request.caller(), file, args);
  write.num_records = std::max(args.num_records, asked.checked.records);
  PieceList group;
  std::uint64_t group_bytes = 0;
  bool has_room = true;
  const auto put_group = [&](bool is_last) -> Status {
    write.is_last = is_last;
    write.pieces = group.bytes();
    const auto room = has_room ? await_room(file, group_bytes + write.pieces.size()) : std::nullopt;
    has_room = room.has_value();
    auto status = keep_group(arriving, file, write, group_bytes, has_room);
    group.clear();
    group_bytes = 0;
    return status;
  };
  auto pieces = asked.pieces();
  Piece piece;
  while (pieces.next(piece)) {
    const auto element_bytes = file.find(piece.varid)->cached->variable.element_bytes;
    for (SliceCursor slices(piece, element_bytes, kMostGroupBytes); !slices.done(); slices.next()) {
      const auto size = static_cast<std::uint64_t>(slices.elements() * element_bytes);
      if (group_bytes + size > kMostGroupBytes || group.bytes().size() > kMostGroupList)
        if (auto status = put_group(false); !status.ok()) return status;
      group.append(slices.slice());
      group_bytes += size;
    }
  }
  if (auto status = put_group(true); !status.ok()) return status;
  if (!has_room) {
    if (file.journal->is_whole()) bring_to_disk(file);
    write.pieces.clear();
    (void)file.journal->note(write, {});  // await_kept() tells
  }
  note_done(request.caller(), args);
  return {};
}

/// Of a write that is in the file.
void Server::keep_done(nssi::PeerId caller, OpenFile &file, const TransferArgs &args) {
  auto write = note_of(caller, file, args);
  write.num_records = file.num_records, write.is_last = true;
  (void)file.journal->note(write, {});
  note_done(caller, args);
}

/// `is_noted`: in the journal.
Status Server::keep_group(Arriving &arriving, OpenFile &file, const LoggedWrite &write, std::uint64_t size_bytes,
                          bool is_noted) {
  auto &request = arriving.request;
  const auto put = [&](std::span<const std::byte> data, bool is_pulled) -> Status {
    put_pieces(file, write.pieces, data);
    if (!is_pulled) arriving.note(data);
    if (write.is_last && !arriving.is_right()) return not_as_sent();
    if (is_noted) (void)file.journal->note(write, data);  // await_kept() tells
    return Status();
  };
  if (size_bytes == 0) return put({}, false);
  if (const auto *view = request.view_data()) {
    count(request.caller(), &ReportResult::bytes_pulled, size_bytes);
    statistics_.last_pull_s = seconds_now();
    return put(view->bytes().subspan(arriving.offset, size_bytes), false);
  }
  take_turns();
  if (is_noted && is_worth_bulk(request.caller(), write, size_bytes))
    if (auto bulk = file.journal->take_bulk(); bulk.ok())
      return keep_bulk(arriving, file, write, *std::move(bulk), size_bytes);
  const auto bounce = bounces_.take(request.caller());
  if (!bounce.ok()) return bounce.error();
  const std::span<std::byte> data(bounce->data(), size_bytes);
  if (auto status = pull(arriving, data); !status.ok()) return status;
  return put(data, true);
}

/// A slow client would keep the log's memory from the others.
bool Server::is_worth_bulk(nssi::PeerId caller, const LoggedWrite &write, std::uint64_t size_bytes) const {
  return size_bytes >= kWorthBulk && !moves_.is_slow(caller) && xdr::encoded_size(write) <= Log::kMostBulkHead;
}

/// Pulls data to where they are written to the log from.
Status Server::keep_bulk(Arriving &arriving, OpenFile &file, const LoggedWrite &write, Log::Bulk bulk,
                         std::uint64_t size_bytes) {
  const std::span<std::byte> data(bulk.data(), size_bytes);
  if (auto status = pull(arriving.request, data, arriving.offset); !status.ok()) return status;
  const auto sum = arriving.note_sum(data);
  put_pieces(file, write.pieces, data);
  if (write.is_last && !arriving.is_right()) return not_as_sent();
  (void)file.journal->note(write, std::move(bulk), size_bytes, sum);  // await_kept() tells
  return {};
}

/// Suspends the fiber until what was noted of the file outlives this server, in whatever journal. If there is none that
/// takes it, until all of it is in the file instead. Who calls this has no share of the file.
Status Server::await_kept(OpenFile &file) {
  for (;;) {
    auto &journal = *file.journal;
    auto written = journal.await_written();
    shorten(journal);
    if (written.ok()) return {};
    if (await_moved(file, journal)) continue;
    const FileGate::Shared shared(file.gate);
    return file.ended ? Status() : keep_in_file(file, written);  // whoever has ended it has brought all to the disk
  }
}

/// Where no journal takes what is noted.
Status Server::keep_in_file(OpenFile &file, const Status &failed) {
  if (!std::exchange(has_told_of_log_, true))
    nessie::log::error("{}; writes go right to the files from now on", failed.error().message);
  return bring_to_disk(file) ? Status() : failed;
}

/// What is in pages of a file. Of what cannot be written its program is told by its next call.
bool Server::bring_to_disk(OpenFile &file) {
  drainer_.flush(file, PageState::kUrgent);
  if (file.lost_anything()) return true;
  const bool is_later = file.is_to_be_put_again;
  if (sync_first(file, &NativeFile::sync_to_disk).nc_error == NC_NOERR && is_as_written(file)) return true;
  if (!is_later) sync_later(file.shared_from_this());
  return false;
}

/// The program will not write to it any more, and what it has written is safe.
Status Server::keep_closed(OpenFile &file, const WritesBefore &after) {
  (void)await_writes(file, after);
  if (file.durability == Durability::kInFile) return {};  // it is about to be in the file
  {
    const FileGate::Shared shared(file.gate);
    file.logged.is_closed = true;
    keep_name(file);
    (void)file.journal->note(LoggedClose{file.token, file.num_records});
  }
  if (file.durability != Durability::kLogged) return await_kept(file);
  return file.journal->await_synced().ok() ? Status() : await_kept(file);
}

/// When it is closed, its program has nothing more to give by which it would be found.
void Server::keep_name(OpenFile &file) {
  auto name = on_io([&] { return file.native->renamed_from(file.logged.path); });
  if (name.empty()) return;
  file.logged.path = std::move(name);
  (void)note_file(file, *file.journal);  // await_kept() tells
}

/// Of a file that has been closed natively: it is needed no more if all of it is there.
void Server::end_keeping(const File &file) {
  if (file->lost_anything()) return;  // it stays in the log
  const auto synced = try_natively(*file, &NativeFile::sync_to_disk);
  file->remember(synced.nc_error, synced.system_error);
  if (synced.nc_error == NC_NOERR) keep_gone(*file);
}

/// All of the file is where it belongs; or it is not to be kept any more.
void Server::keep_gone(OpenFile &file) {
  if (file.journal == nullptr) return;
  gone_.insert(file.token);  // who has had no answer asks again
  (void)file.journal->note_gone(file.token);
}

}  // namespace staging
