// SPDX-License-Identifier: BSD-3-Clause
// Pages that are not as they were put there: memory is faulty, or something has written where it must not. They are
// not written to the file. What a journal has of them is put there once more; what none has is lost.
#include <services/staging/server/drainer.hpp>

#include <base/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace staging {

namespace {

constexpr char kWhatToDo[] = "have the memory of this node checked";

/// Copies what a piece has of the page's elements, and takes it from `missing`.
void take(Page &page, const Piece &piece, const std::byte *data, IntervalSet &missing) {
  const auto &variable = page.owner().variable;
  for (RunCursor cursor(variable, piece); !cursor.done();) {
    const auto run = cursor.run();
    const Interval part{std::max(run.begin, page.first()), std::min(run.end, page.range().end)};
    if (part.begin < part.end) {
      std::memcpy(page.at(part.begin), data + (part.begin - run.begin) * variable.element_bytes,
                  static_cast<std::size_t>(part.size() * variable.element_bytes));
      missing.subtract(part);
    }
    data += run.size() * variable.element_bytes;
    cursor.consume(run.size());
  }
}

}  // namespace

void Drainer::note_damage(OpenFile &file, const Page &page, bool is_lost) {
  const auto where = describe(page.owner().variable, page.dirty_bounds());
  nessie::log::error("{}: {} is not in memory as it was put there; {}{}", file.path, where,
                     is_lost ? "it is not written to the file; " : "it is made again from the log; ", kWhatToDo);
  if (is_lost && !file.is_direct)
    file.note_damage(fmt::format("{} was damaged in the memory of its server; {}", where, kWhatToDo));
}

/// Puts what is dirty in a page there once more, as the file's journal has it. Suspends the fiber. False: it has not
/// all of it.
bool Drainer::remake(OpenFile &file, Page &page) {
  if (file.journal == nullptr) return false;
  IntervalSet missing;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end)) missing.add(run);
  const auto on_write = [&](const LoggedWrite &write, std::span<const std::byte> data) -> nessie::Status {
    const auto *from = data.data();
    if (data.empty()) return {};
    Piece piece;
    for (PieceReader pieces(std::span(write.pieces)); pieces.next(piece);) {
      const auto *variable = file.find(piece.varid);
      if (variable == nullptr) return {};
      if (piece.varid == page.owner().variable.varid) take(page, piece, from, missing);
      from += piece.elements() * variable->cached->variable.element_bytes;
    }
    return {};
  };
  const auto replayed = file.journal->replay(file.token, {on_write, {}});
  if (!replayed.ok() || !missing.empty()) return false;
  page.note_sound();
  return true;
}

/// False: what a page had is lost.
bool Drainer::make_sound(OpenFile &file, Page &page) {
  if (page.is_sound() || remake(file, page)) return true;
  note_damage(file, page, true);
  return false;
}

}  // namespace staging
