// SPDX-License-Identifier: BSD-3-Clause
// The checksum of what is dirty in a page.
//
// Design notes. A checksum is a polynomial modulo another one, and a page the sum of its parts, each times the power of
// x that has so many bits as lie behind it. So what is put there is added, in whatever order it comes, and taken out
// again when something else is put over it; what nobody has written counts as zeros. Where two put something in one
// place at the same time, nobody knows what is there, and the page has no checksum until it is empty again.
#include <services/staging/server/page_cache.hpp>

#include <base/crc32c.hpp>

#include <algorithm>
#include <cstring>

namespace staging {

namespace {

constexpr std::uint32_t kFromNothing = ~std::uint32_t{0};  // crc32c() inverts it

bool meet(Interval a, Interval b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

std::uint32_t sum_of(std::span<const std::byte> data) { return ~nessie::crc32c(data, kFromNothing); }

std::uint64_t Page::bytes_behind(std::int64_t element) const {
  return static_cast<std::uint64_t>((range().end - element) * owner_->variable.element_bytes);
}

void Page::put(const Rows &rows, const std::byte *data) {
  const auto element_bytes = owner_->variable.element_bytes;
  const auto row_bytes = static_cast<std::size_t>(rows.first.size() * element_bytes);
  auto *to = at(rows.first.begin);
  if (is_being_filled(rows)) is_summed_ = false;
  if (!is_summed_) {
    for (std::int64_t row = 0; row < rows.count; ++row, to += rows.step * element_bytes, data += row_bytes)
      std::memcpy(to, data, row_bytes);
    return;
  }
  const nessie::Crc32cShift shift(rows.count > 1 ? static_cast<std::uint64_t>(rows.step * element_bytes) : 0);
  std::uint32_t sum = 0;
  auto run = rows.first;
  for (std::int64_t row = 0; row < rows.count; ++row, run.begin += rows.step, run.end += rows.step) {
    if (meet(run, bounds_)) take_out(run);
    sum = shift(sum) ^ ~nessie::copy_crc32c(to, data, row_bytes, kFromNothing);
    to += rows.step * element_bytes;
    data += row_bytes;
  }
  const auto last = rows.first.end + (rows.count - 1) * rows.step;
  sum_ ^= nessie::Crc32cShift(bytes_behind(last))(sum);
}

void Page::note_put(Interval elements, std::uint32_t sum) {
  if (meet(elements, bounds_) && has_dirty(elements)) is_summed_ = false;
  if (is_summed_) sum_ ^= nessie::Crc32cShift(bytes_behind(elements.end))(sum);
}

/// What is dirty of these elements is about to be written over.
void Page::take_out(Interval elements) {
  if (!has_dirty(elements)) return;
  const auto element_bytes = owner_->variable.element_bytes;
  for (auto run = dirty_run(elements.begin); run.begin < elements.end; run = dirty_run(run.end)) {
    run.end = std::min(run.end, elements.end);
    const auto sum = sum_of({at(run.begin), static_cast<std::size_t>(run.size() * element_bytes)});
    sum_ ^= nessie::Crc32cShift(bytes_behind(run.end))(sum);
  }
}

bool Page::is_being_filled(const Rows &rows) const {
  const Interval all{rows.first.begin, rows.first.end + (rows.count - 1) * rows.step};
  return std::ranges::any_of(filling_, [&](Interval one) { return meet(one, all); });
}

bool Page::is_free(Interval elements) const {
  return !is_summed_ || (!has_dirty(elements) && !is_being_filled({elements}));
}

void Page::end_filling(Interval elements) { filling_.erase(std::ranges::find(filling_, elements)); }

std::uint32_t Page::sum_of_dirty() const {
  const auto element_bytes = owner_->variable.element_bytes;
  std::uint32_t sum = 0;
  auto end = first_;
  std::int64_t distance = 0;
  nessie::Crc32cShift shift(0);
  for (auto run = dirty_run(first_); run.size() > 0; end = run.end, run = dirty_run(run.end)) {
    if (const auto next = run.end - end; std::exchange(distance, next) != next)
      shift = nessie::Crc32cShift(static_cast<std::uint64_t>(next * element_bytes));
    sum = shift(sum) ^ sum_of({at(run.begin), static_cast<std::size_t>(run.size() * element_bytes)});
  }
  return nessie::Crc32cShift(bytes_behind(end))(sum);
}

bool Page::is_sound() const { return !is_summed_ || sum_of_dirty() == sum_; }

}  // namespace staging
