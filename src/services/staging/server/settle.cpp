// SPDX-License-Identifier: BSD-3-Clause
// For whoever waits for a file to be whole: by a request, or at the door.
#include <services/staging/server/server.hpp>

#include <base/log.hpp>

#include <algorithm>

namespace staging {

Result<NcResult> Server::settle(Request &, const SettleArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const bool all = args.identity.inode == 0 && args.path.empty();
  const auto same = [&](const OpenFile &file) {
    return all || (args.identity.inode != 0 && file.identity == args.identity) || file.path == args.path;
  };
  if (args.to_write && board_) board_->note_beside(args.identity);
  for (const auto &[token, file] : files_)
    if (args.to_write && same(*file)) file->is_written_past = true;
  settle_files(same);
  return NcResult{};
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

/// Puts what an open file has into it.
void Server::publish(const File &file) {
  file->line->await_arrived();
  drainer_.flush(*file, PageState::kUrgent);
  if (!file->defined || !file->native->writable()) return;
  (void)tell_records(*file, false);
}

/// Suspends the fiber until a file that is closed is whole.
void Server::await_closed(const File &file) {
  while (std::ranges::find(closing_, file) != closing_.end()) {
    drainer_.hasten(*file);
    (void)closing_changed_.wait();
  }
}

/// Without it, programs that read a file right after it was closed may find it incomplete.
void Server::open_door() {
  const auto settle = [this](const FileIdentity &identity, std::function<void()> done) {
    runtime_.spawn([this, identity, done = std::move(done)] {
      const auto same = [&](const OpenFile &file) { return identity.inode == 0 || file.identity == identity; };
      await_left(same);
      settle_files(same);
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
  const auto put_up = options_.is_successor ? Board::take_over : Board::create;
  auto board = door.ok() ? put_up(options_.board_path, (*door)->name(), options_.client_timeout)
                         : nessie::Result<std::unique_ptr<Board>>(door.error());
  if (!board.ok())
    return nessie::log::warning("files may be seen incomplete right after they were closed: {}", board.error().message);
  door_ = std::move(*door);
  board_ = std::move(*board);
}

}  // namespace staging
