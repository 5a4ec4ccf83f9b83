// SPDX-License-Identifier: BSD-3-Clause
// What a server does that is started after one that has died: it goes on from that one's journal.
//
// Design notes. Everything but hello and hold waits until that is over. A file is found by its name, if it is still the
// same file; otherwise its program gives it once more, as it does anyway when it comes back (hold). Then all writes are
// put into pages again, in their order: to write once more what is in the file already changes nothing. In the end this
// waits for all clients that are alive, who send again what had no answer: so nothing overtakes what was sent before.
#include <services/staging/server/server.hpp>

#include <services/staging/server/opening.hpp>

#include <services/staging/handle.hpp>

#include <base/file.hpp>
#include <base/log.hpp>

#include <fmt/format.h>
#include <pnetcdf.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kLookForPrograms{20};
constexpr std::chrono::seconds kPartner{1};  // one that is started again has nothing for this server

Status count_unopened(const LoggedWrite &write, std::size_t size_bytes, std::map<FileToken, FileReport> &unopened) {
  const auto file = unopened.find(write.file);
  if (file != unopened.end()) file->second.bytes_acknowledged += size_bytes;
  return {};
}

}  // namespace

Status Server::await_recovered() {
  while (is_recovering_)
    if (auto status = recovered_.wait(); !status.ok()) return status;
  return {};
}

/// Suspends the fiber until what another server has left of such files is here: of those that are open, also what their
/// programs send again. Others need not wait for programs.
void Server::await_left(const std::function<bool(const OpenFile &)> &same) {
  while (is_reopening_ && recovered_.wait().ok()) continue;
  const bool is_open = std::ranges::any_of(files_, [&](const auto &file) { return same(*file.second); });
  if (is_open) (void)await_recovered();
}

/// Of a file that is not open here.
Result<NcResult> Server::unknown(FileToken token) const {
  if (gone_.contains(token)) return NcResult{};  // whoever asks again has had no answer
  if (has_recovered_)
    return Error{Code::kNotFound, "the staging server that had this file in its memory only has died"};
  return NcResult{NC_EBADID};
}

/// Of a file that is open already: whoever opened it asks again, as he had no answer.
Result<NcResult> Server::adopt(Request &request, OpenFile &file) {
  if (!has_recovered_ || !file.is_kept()) return token_taken();
  file.owner = request.caller();
  return NcResult{};
}

Status Server::returned(Request &request) {
  if (auto *client = returning(request.caller())) client->is_expected = false, client->is_back = true;
  recovered_.notify_all();
  return {};
}

void Server::recover() {
  std::set<FileToken> found;
  if (auto status = recover_from_log(found); !status.ok())
    note_left({options_.log_path, 0,
               "what a staging server has left there stays there, and cannot be used now: " + status.error().message});
  const auto from_replica = recover_from_replica(found);
  const bool had_copies = from_replica.code() != Code::kPeerLost || (!logged_ && board_ && board_->had_kept_files());
  if (!from_replica.ok() && had_copies)
    note_left({options_.log_path, 0,
               "what another staging server keeps of this one's cannot be used: " + from_replica.error().message});
  is_reopening_ = false;
  recovered_.notify_all();
  if (board_) board_->forget_predecessor();
  await_returning();
  end_orphans();
  is_recovering_ = false;
  has_recovered_ = true;
  recovered_.notify_all();
  const auto is_in_log = [&](const auto &file) {
    return file.second->durability == Durability::kReplicated && file.second->journal == logged_.get();
  };
  if (options_.servers > 1 && std::ranges::any_of(files_, is_in_log)) renew_replicated();
}

Status Server::recover_from_log(std::set<FileToken> &found) {
  if (!may_be_kept() || !Journal::is_in(options_.log_path)) return {};
  if (auto status = open_logged(); !status.ok()) return status;
  return recover_files(*logged_, found);
}

/// A server that has ended in order had no copies of this one's any more (give_copies_up()). Where the other servers
/// are, whoever is asked first tells: who has started this one, or a client; nobody, when it is told to end.
Status Server::recover_from_replica(std::set<FileToken> &found) {
  if (!options_.is_successor || options_.servers == 1) return {};
  const auto deadline = Deadline::in(options_.client_timeout);
  while (servers_.size() != options_.servers && !deadline.passed() && !finishing_)
    if (auto status = recovered_.wait(deadline); status.code() == Code::kCancelled) return status;
  if (partner().empty()) return Error{Code::kPeerLost, "nobody has told where the other servers are"};
  if (auto status = open_replicated(Deadline::in(kPartner)); !status.ok()) return status;
  return recover_files(*replicated_.journal, found);
}

Status Server::recover_files(Journal &journal, std::set<FileToken> &found) {
  auto left = journal.look();
  if (!left.ok()) return left.error();
  forget_older(journal, *left, found);
  gone_.insert(left->gone.begin(), left->gone.end());
  for (const auto &[id, client] : left->clients) {
    auto &known = returning_[id];
    if (known.who.client == 0) known.who = client;
    known.done.add(client.answered, client.answered, {});
    for (const auto number : client.done) known.done.add(number, client.answered, {});
    known.is_expected = !known.is_back && may_return(known.who);
  }
  std::map<FileToken, FileReport> unopened;
  for (const auto &[token, file] : left->files)
    if (auto opened = reopen(journal, file); !opened.ok())
      unopened[token] = {file.file.path, NC_EFILE, opened.error().message};
  for (const auto &damage : left->damage) note_damage(*left, damage);
  auto replayed = replay(journal, *left, unopened);
  for (const auto &[token, file] : unopened) note_left(file);
  if (!replayed.ok()) return replayed;
  for (const auto &[token, file] : left->files) {
    auto open = files_.find(token);
    if (open == files_.end() || !file.file.is_closed) continue;
    gone_.insert(token);  // for its program
    closing_.push_back(files_.extract(open).mapped());
    finish_close_later(closing_.back(), {});
  }
  return {};
}

/// A file that was moved to the log may still be with another server as it was then; once it is moved back, the log
/// does not have it. `found`: what journals have that were looked at before this one.
void Server::forget_older(Journal &journal, Left &left, std::set<FileToken> &found) {
  std::set<FileToken> here = left.gone;
  for (const auto &[token, file] : left.files) here.insert(token);
  for (const auto token : here)
    if (!found.insert(token).second && left.files.erase(token) > 0) (void)journal.note_moved(token);
}

/// What stays in a log, as it cannot be put where it belongs.
void Server::note_left(const FileReport &file) {
  nessie::log::error("{}: {}", file.path, file.message);
  note_failed(total_, file);
}

/// Each file may have lost something that was in the log before.
void Server::note_damage(const Left &left, const nessie::service::LogDamage &damage) {
  bool is_of_a_file = false;
  for (const auto &[token, file] : left.files) {
    const auto open = find(token);
    if (!open || file.since > damage.at.begin) continue;
    open->note_damage(damage.what);
    is_of_a_file = true;
  }
  if (is_of_a_file) return nessie::log::error("{}", damage.what);
  note_left({options_.log_path, 0, "some of what was acknowledged may be missing: " + damage.what});
}

/// The files of a client that is back are its own again; those of programs that have ended are finished. A process of
/// this node that lives, and has not called for long, may yet come.
void Server::end_orphans() {
  std::vector<File> left;
  for (const auto &[token, file] : files_)
    if (file->is_kept() && file->owner == kNobody) left.push_back(file);
  for (const auto &file : left) {
    const auto owner = returning_.find(file->logged.owner);
    if (owner != returning_.end() && owner->second.who.pid > 0)
      runtime_.spawn([this, file] { await_owner(file); });
    else if (!find_owner(*file))
      end_orphan(file);
  }
}

bool Server::find_owner(OpenFile &file) const {
  const auto is_owner = [&](const auto &client) { return client.second == file.logged.owner; };
  const auto owner = std::ranges::find_if(clients_, is_owner);
  if (owner != clients_.end()) file.owner = nssi::PeerId{owner->first};
  return owner != clients_.end();
}

void Server::await_owner(const File &file) {
  while (find(file->token) == file && !finishing_ && !find_owner(*file)) {
    const auto owner = returning_.find(file->logged.owner);
    if (owner == returning_.end() || !may_return(owner->second.who)) return end_orphan(file);
    runtime_.sleep_until(Deadline::in(kLookForPrograms));
  }
}

void Server::end_orphan(const File &file) {
  files_.erase(file->token);
  closing_.push_back(file);
  runtime_.spawn([this, file] { finish_orphan(file); });
}

/// A client of this node that has not ended. Of another node it may be that it lives.
bool Server::may_return(const LoggedClient &client) {
  return client.pid == 0 || (client.pid > 0 && started_of(client.pid) == client.started);
}

/// Suspends the fiber until all clients are back that live.
void Server::await_returning() {
  const auto deadline = Deadline::in(options_.client_timeout);
  while (!deadline.passed() && !finishing_) {
    std::erase_if(returning_,
                  [](const auto &client) { return client.second.is_expected && !may_return(client.second.who); });
    if (std::ranges::none_of(returning_, [](const auto &client) { return client.second.is_expected; })) return;
    (void)recovered_.wait(Deadline::in(kLookForPrograms).earlier(deadline));
  }
}

/// The file that was left, by its name; or as its program gives it once more; or by another name in its folder.
Result<nessie::Fd> Server::find_left(const LeftFile &left) {
  const auto &file = left.file;
  const auto owner = returning_.find(file.owner);
  const auto deadline = Deadline::in(options_.client_timeout);
  for (;;) {
    const auto held = held_.find(file.file);
    if (held != held_.end() && held->second.file) {
      auto copy = duplicate(held->second.file);
      if (copy) return copy;
    }
    nessie::Fd found(::open(file.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    const int cause = found ? 0 : errno;
    if (found && identity_of(found.get()) == file.identity) return found;
    const bool may_come = owner != returning_.end() && may_return(owner->second.who) && !deadline.passed();
    if (!may_come || finishing_) {
      auto renamed = on_io([&] { return find_in_folder(file, O_RDWR); });
      return renamed ? Result<nessie::Fd>(std::move(renamed)) : why_not_found(cause);
    }
    (void)recovered_.wait(Deadline::in(kLookForPrograms).earlier(deadline));
  }
}

/// Opens a file as it was. What is left of one for which that fails stays in the journal.
Result<Server::File> Server::reopen(Journal &journal, const LeftFile &left) {
  auto found = find_left(left);
  if (!found.ok()) return found.error();
  const auto undo = undo_path(options_.log_path, left.file.file);
  auto opened = reopen_native(undo, left, *std::move(found));
  if (!opened.file) return Error{Code::kIo, ncmpi_strerror(opened.nc_error)};
  const auto &logged = left.file;
  const auto held = held_.find(logged.file);
  const auto owner = held != held_.end() ? held->second.owner : kNobody;
  const auto file =
      make_file(logged.file, logged.path, std::move(opened.file), owner, logged.processes, logged.durability);
  if (file->native->is_new()) define_again(*file, left);
  file->definitions = logged.definitions;
  file->defined_as = left.defined_as;
  if (!file->defined) file->made = left.definitions;
  file->logged = logged;
  file->journal = &journal;
  file->writes = WriteCount(logged.settled);
  for (const auto &later : logged.later) file->writes.add(later.call, later.writes);
  if (file->marked) file->marked->is_unknown = true;
  if (!file->defined) return file;
  if (left.unfinished && left.unfinished->is_amend) finish_amend(*file, *left.unfinished);
  HeaderResult unused;
  if (const int error = read_header(*file, unused); error != NC_NOERR) {
    files_.erase(logged.file);
    return Error{Code::kIo, ncmpi_strerror(error)};
  }
  file->raise_num_records(logged.num_records);
  begin_data_mode(*file, false);
  return file;
}

/// Who has had no answer to it asks again.
void Server::finish_amend(OpenFile &file, const LoggedDefinition &amend) {
  file.defined_as = on_io([&] { return file.native->amend_again(amend.args.definitions); });
  file.definitions = std::max(file.definitions, amend.args.number);
}

/// A new file that was never defined is made again; so is what was in a file before its definitions began to change.
NativeFile::Opened Server::reopen_native(const std::string &undo, const LeftFile &left, nessie::Fd file) {
  const auto &logged = left.file;
  return on_io([&] {
    const bool is_new = logged.is_created && !logged.is_defined;
    if (!is_new && left.unfinished && !left.unfinished->is_amend) (void)NativeFile::restore(file.get(), undo);
    const int mode = logged.is_created ? NC_WRITE : logged.mode;
    auto opened = is_new ? NativeFile::create(std::move(file), logged.mode, logged.hints)
                         : NativeFile::open(std::move(file), mode, logged.hints);
    if (opened.file && !is_new) opened.file->lose_fill_modes(logged.fill_modes);
    return opened;
  });
}

/// Carries out once more what a new file was defined with.
void Server::define_again(OpenFile &file, const LeftFile &left) {
  for (const auto &[definition, nc_error] : left.definitions)
    (void)(definition.is_amend ? amend(file, definition.args.definitions, false)
                               : end_define(file, definition.args, false));
  file.in_define_mode = file.native->is_new();
  file.defined = !file.in_define_mode;
}

/// Puts everything that was written into pages once more; counts what there is of files that could not be opened.
Status Server::replay(Journal &journal, const Left &left, std::map<FileToken, FileReport> &unopened) {
  const auto on_write = [&](const LoggedWrite &write, std::span<const std::byte> data) -> Status {
    const auto file = find(write.file);
    if (!file) return count_unopened(write, data.size(), unopened);
    if (write.pieces.empty()) return {};
    const auto checked = check_pieces(write.pieces, data.size(), file->shapes());
    if (!checked.ok()) return checked.error();
    if (file->takes_turns) drain_others(*file);
    put_pieces(*file, write.pieces, data);
    for (const auto &part : checked->parts) file->acknowledge(*file->find(part.varid), part.bytes, false);
    return {};
  };
  return journal.replay(left, {on_write, [&](const auto &damage) { note_damage(left, damage); }});
}

}  // namespace staging
