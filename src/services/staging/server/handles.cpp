// SPDX-License-Identifier: BSD-3-Clause
// How the server comes to the program's files, and what several handles on one file owe each other: natively, on one
// node, each sees at once what the others have written. So they take turns, and before each turn what the others have
// written goes to the file. Who has the only handle, as nearly always, pays nothing for it.
#include <services/staging/server/server.hpp>

#include <base/credential.hpp>
#include <base/log.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

Result<nessie::Fd> Server::obtain_descriptor(Request &request, const std::string &path, const FileHandle &handle,
                                             bool writable) {
  Result<nessie::Fd> file = nessie::Fd();
  if (handle.descriptor == 0) {
    if (runtime_.can_give_descriptors(request.caller()))
      return Error{Code::kRefused, "a process of this node gives what it has opened, and names nothing"};
    on_io([&] { return file = open_by_name(path, handle, writable), 0; });
    return file;
  }
  auto given = request.take_descriptor(handle.descriptor);
  if (!given.ok()) return given.error();
  file = nessie::Fd(*given);
  if (auto usable = check_given(*given, writable); !usable.ok()) return usable.error();
  return file;
}

/// To whoever knows the file's token, as all that is done with the file. What a process of another node had this server
/// open by its name is lent to nobody: only what a process of this node could open itself.
Result<LendResult> Server::lend(Request &request, const FileToken &token) {
  const auto file = find(token);
  if (!file) return Error{Code::kNotFound, "the file is not open at this server"};
  if (!file->was_given)
    return Error{Code::kRefused, "the staging server has opened it by its name, and lends what it was given only"};
  const int descriptor = file->native->descriptor();
  if (auto fair = check_lent(descriptor, file->native->writable()); !fair.ok()) return fair.error();
  const auto key = nessie::random_u64() | 1;
  if (auto given = request.give_descriptor(key, descriptor); !given.ok()) return given.error();
  return LendResult{key};
}

/// Other handles on the same file, those that are closed and not drained included.
std::vector<Server::File> Server::others_like(const OpenFile &file) const {
  std::vector<File> others;
  const auto is_other = [&](const File &other) { return other.get() != &file && other->identity == file.identity; };
  for (const auto &[token, open] : files_)
    if (is_other(open)) others.push_back(open);
  std::ranges::copy_if(closing_, std::back_inserter(others), is_other);
  return others;
}

/// A new handle: if there are others, all take turns from now on.
void Server::note_handle(OpenFile &file) {
  for (const auto &other : others_like(file)) {
    file.line = other->line;
    file.takes_turns = other->takes_turns = true;
  }
}

void Server::drain_others(const OpenFile &file) {
  for (const auto &other : others_like(file))
    if (other->dirty_bytes() > 0) drainer_.flush(*other, PageState::kUrgent);
}

/// Takes out of the inboxes all that they hold now; `arrival` is called, handlers begin later. Each turn takes a part
/// of an inbox, and none takes more than so many; and who waits for an answer, which nobody gives meanwhile, sends no
/// more.
void Server::look_at_inboxes() {
  constexpr int kMostTurns = 1024;
  for (int turn = 0; turn < kMostTurns && runtime_.endpoint().progress() != 0; ++turn) continue;
}

/// Before a read: what was put before, by whatever process and through whatever handle, was in an inbox when the put
/// returned. What this process put itself has been answered, and so has everything in direct mode.
void Server::await_what_was_sent(OpenFile &file) {
  const bool others_put = file.native->writable() && (peers_.size() > 1 || !file.line->is_empty());
  if (options_.mode == Mode::kDirect || !(others_put || file.takes_turns)) return;
  look_at_inboxes();
  file.line->await_arrived();
}

/// The file was emptied: what other handles know of it is over.
void Server::note_created(OpenFile &file) {
  for (const auto &other : others_like(file)) other->created_over = true;
  shelf_.drop(file.identity);
  note_write(file);
}

/// Copies that programs have of what they read hold no more, nor pages of other handles.
void Server::note_write(OpenFile &file) {
  if (board_) board_->note_write(file.identity);
  if (!file.takes_turns) return;
  for (const auto &other : others_like(file)) other->forget_clean();
}

/// Puts what an open file has into it.
void Server::publish(const File &file) {
  file->line->await_arrived();
  drainer_.flush(*file, PageState::kUrgent);
  if (!file->defined || !file->native->writable()) return;
  (void)tell_records(*file, &NativeFile::publish_records);
}

/// Has the header say how many records there are.
int Server::tell_records(OpenFile &file, int (NativeFile::*tell)(std::int64_t)) {
  const auto records = file.num_records, told = file.records_to_tell();
  const int error = on_io([&] { return std::invoke(tell, *file.native, told); });
  if (error == NC_NOERR) file.records_in_file = std::max(file.records_in_file, records);
  return error;
}

/// Suspends the fiber until a file that is closed is whole.
void Server::await_closed(const File &file) {
  while (std::ranges::find(closing_, file) != closing_.end()) {
    drainer_.hasten(*file);
    (void)closing_changed_.wait();
  }
}

/// Drains those that are open, waits for those that are closed to be in the file: what comes later is not waited for.
void Server::settle_files(const std::function<bool(const OpenFile &)> &same) {
  std::vector<File> files;
  for (const auto &[token, file] : files_)
    if (same(*file)) files.push_back(file);
  if (!files.empty()) look_at_inboxes();
  std::ranges::copy_if(closing_, std::back_inserter(files), [&](const File &file) { return same(*file); });
  for (const auto &file : files) {
    if (find(file->token) == file) publish(file);
    if (find(file->token) != file) await_closed(file);
  }
}

/// Without it, programs that read a file right after it was closed may find it incomplete.
void Server::open_door() {
  const auto settle = [this](const FileIdentity &identity, std::function<void()> done) {
    runtime_.spawn([this, identity, done = std::move(done)] {
      settle_files([&](const OpenFile &file) { return identity.inode == 0 || file.identity == identity; });
      done();
    });
  };
  const auto pulse = [this](std::function<void()> alive) {
    runtime_.post([this, alive = std::move(alive)] {
      if (board_) board_->show_life();
      alive();
    });
  };
  auto door = Door::open(settle, pulse);
  auto board = door.ok() ? Board::create(options_.board_path, (*door)->name(), options_.client_timeout)
                         : nessie::Result<std::unique_ptr<Board>>(door.error());
  if (!board.ok())
    return nessie::log::warning("files may be seen incomplete right after they were closed: {}", board.error().message);
  door_ = std::move(*door);
  board_ = std::move(*board);
}

}  // namespace staging
