// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/read_ahead.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>

#include <time.h>

#include <algorithm>
#include <cstring>

namespace interpose {

namespace {

constexpr std::size_t kSmall = 4 << 10, kCopyBytes = 64 << 10, kMostCopies = 64;
constexpr std::uint32_t kFirstReads = 2;  // go alone: few files are read bit by bit
constexpr std::uint32_t kWorthIt = 4, kLongestPatience = 4096;
constexpr std::chrono::seconds kOldest{1};

std::chrono::nanoseconds coarse_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

bool ReadAhead::answer(const staging::Item &item, const staging::FileIdentity &identity, std::int64_t last,
                       const Fetch &fetch) {
  if (item.data.size() > kSmall || !boards().are_complete() || boards().was_opened_to_write(identity)) return false;
  drop_stale(identity);
  if (small_reads_ < kFirstReads) return ++small_reads_, false;
  const auto size = static_cast<std::size_t>(item.layout->element_bytes);
  auto *to = item.data.data();
  staging::Piece piece;
  for (staging::PieceReader pieces(item.pieces); pieces.next(piece);)
    for (staging::RunCursor cursor(*item.layout, piece); !cursor.done();) {
      const auto run = cursor.run();
      auto *copy = find(item.layout->varid, run.begin);
      if (copy == nullptr) copy = fetch_around(*item.layout, run.begin, last, fetch);
      if (copy == nullptr) return false;
      const auto elements = std::min(run.end, copy->elements.end) - run.begin;
      const auto bytes = static_cast<std::size_t>(elements) * size;
      std::memcpy(to, copy->data.data() + static_cast<std::size_t>(run.begin - copy->elements.begin) * size, bytes);
      to += bytes;
      ++copy->hits;
      cursor.consume(elements);
    }
  return true;
}

/// Copies that are too old, or have been written over.
void ReadAhead::drop_stale(const staging::FileIdentity &identity) {
  const auto now = coarse_now();
  const auto counted = boards().count_of_writes(identity);
  if (counted == made_at_ && now < until_) return;
  if (!copies_.empty()) judge(copies_[latest_]);
  copies_.clear();
  oldest_ = 0;
  made_at_ = counted;
  until_ = now + kOldest;
}

ReadAhead::Copy *ReadAhead::find(int varid, std::int64_t element) {
  const auto holds = [&](const Copy &copy) {
    return copy.varid == varid && copy.elements.begin <= element && element < copy.elements.end;
  };
  if (latest_ < copies_.size() && holds(copies_[latest_])) return &copies_[latest_];
  const auto found = std::ranges::find_if(copies_, holds);
  if (found == copies_.end()) return nullptr;
  latest_ = static_cast<std::size_t>(found - copies_.begin());
  return &*found;
}

/// Fetches the copy that holds `element`, unless copies have not been of use lately.
ReadAhead::Copy *ReadAhead::fetch_around(const staging::VariableLayout &layout, std::int64_t element, std::int64_t last,
                                         const Fetch &fetch) {
  if (plain_reads_ > 0) return --plain_reads_, nullptr;
  const auto span = static_cast<std::int64_t>(kCopyBytes) / layout.element_bytes;
  const auto begin = element / span * span;
  Copy &copy = place();
  copy.varid = layout.varid;
  copy.elements = {begin, std::min(begin + span, last)};
  copy.hits = 0;
  copy.data.resize(static_cast<std::size_t>(copy.elements.size() * layout.element_bytes));
  if (fetch(layout, copy.elements, copy.data) == 0) return &copy;
  copy.elements = {};  // the question itself will tell what is wrong
  return nullptr;
}

/// A place for the next copy: a new one, or the one of the oldest copy.
ReadAhead::Copy &ReadAhead::place() {
  if (copies_.size() < kMostCopies) {
    latest_ = copies_.size();
    return copies_.emplace_back();
  }
  latest_ = oldest_;
  oldest_ = (oldest_ + 1) % kMostCopies;
  judge(copies_[latest_]);
  return copies_[latest_];
}

/// One that is given up, and that nobody used, makes the next reads go without.
void ReadAhead::judge(const Copy &copy) {
  patience_ = copy.hits >= kWorthIt ? 0 : std::min(2 * patience_ + 16, kLongestPatience);
  plain_reads_ = patience_;
}

}  // namespace interpose
