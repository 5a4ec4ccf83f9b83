// SPDX-License-Identifier: BSD-3-Clause
// What several handles on one file owe each other: natively, on one node, each sees at once what the others have
// written. So they take turns, and before each turn what the others have written goes to the file. Who has the only
// handle, as nearly always, pays nothing for it.
#include <services/staging/server/server.hpp>

#include <algorithm>

namespace staging {

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
    if (file.read_back && other->read_back) file.read_back = other->read_back;
  }
}

void Server::drain_others(const OpenFile &file) {
  for (const auto &other : others_like(file))
    if (other->dirty_bytes() > 0) drainer_.flush(*other, PageState::kUrgent);
}

/// The file was emptied: what other handles know of it is over.
void Server::note_created(OpenFile &file) {
  for (const auto &other : others_like(file)) other->created_over = true;
  if (file.marked) marks_.note_created(file.identity, file.token);
  shelf_.drop(file.identity);
  note_write(file);
  if (file.read_back) on_io([&] { return file.read_back->clear(), 0; });
}

/// Copies that programs have of what they read hold no more, nor pages of other handles.
void Server::note_write(OpenFile &file) {
  if (board_) board_->note_write(file.identity);
  if (!file.takes_turns) return;
  for (const auto &other : others_like(file)) other->forget_clean();
}

}  // namespace staging
