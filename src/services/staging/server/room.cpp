// SPDX-License-Identifier: BSD-3-Clause
// Journals get shorter as what is in them is put into the files, those first that have the oldest records, idle or not;
// and who writes waits for that where there is no more room.
//
// Design notes. Who waits for room has a share of his file, and perhaps his turn. So what makes room waits for neither,
// and needs no room itself: what it notes goes to where writes leave room. It waits for native PnetCDF, and never for
// what another server has in its pages.
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

using nessie::Code;
using nessie::Deadline;

namespace {

constexpr std::chrono::milliseconds kLookForRoom{50};

}  // namespace

/// Suspends the fiber until the file's journal has room for so much. Nothing: none comes, as it has failed, or as what
/// is in it cannot be put into the files.
std::optional<Journal::Room> Server::await_room(OpenFile &file, std::uint64_t size_bytes) {
  for (;;) {
    auto &journal = *file.journal;  // another one takes its place while nobody writes
    if (auto room = journal.take_room(size_bytes)) return room;
    shorten(journal);
    if (journal.await_release(Deadline::in(kLookForRoom)).code() == Code::kCancelled) return std::nullopt;
    if (!journal.is_whole() || journal.cannot_be_shortened) return std::nullopt;
  }
}

/// Begins to put into the files what makes a journal long, if it is.
void Server::shorten(Journal &journal) {
  if (!journal.is_crowded() || std::exchange(journal.is_being_shortened, true)) return;
  runtime_.spawn([this, &journal] {
    while (journal.is_crowded() && journal.is_whole() && shorten_once(journal)) continue;
    journal.is_being_shortened = false;
  });
}

/// Whether it is worth trying once more.
bool Server::shorten_once(Journal &journal) {
  const auto before = journal.needed();
  bool is_any_about_to_go = false;
  for (const auto token : journal.crowding())
    if (const auto file = find_to_write(token); file && file->journal == &journal)
      mark(*file);
    else
      is_any_about_to_go = is_any_about_to_go || is_about_to_go(token);
  journal.release();
  if (journal.needed() > before) return true;
  journal.cannot_be_shortened = !is_any_about_to_go;
  return is_any_about_to_go && journal.await_release(Deadline::in(kLookForRoom)).code() != Code::kCancelled;
}

/// Of a file that takes no more writes: then it is made to.
bool Server::is_about_to_go(FileToken token) {
  const auto file = find_closing(token);
  if (file) drainer_.hasten(*file);
  return file != nullptr;
}

/// What was noted of a file so far is put into it, and not needed any more. False: it is needed.
bool Server::mark(OpenFile &file) {
  const FileGate::Beside beside(file.gate);
  if (file.ended || file.lost_anything()) return false;
  auto &journal = *file.journal;
  const auto since = journal.end();
  if (!note_all(file, journal).ok() || !bring_to_disk(file) || file.lost_anything() || file.native->is_closed())
    return false;
  note_clients(journal);
  if (!journal.await_written().ok()) return false;
  journal.need_since(file.token, since);
  return true;
}

}  // namespace staging
