// SPDX-License-Identifier: BSD-3-Clause
#include <service/index_space.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace nessie::service {

namespace {

/// The last index that `piece` selects in `dim`; nothing on overflow. count > 0.
std::optional<std::int64_t> last_index(const Piece &piece, std::size_t dim) {
  std::int64_t last = 0;
  if (__builtin_mul_overflow(piece.count[dim] - 1, piece.step(dim), &last)) return std::nullopt;
  if (__builtin_add_overflow(last, piece.start[dim], &last)) return std::nullopt;
  return last;
}

bool fits(const VariableLayout &variable, const Piece &piece, std::size_t dim) {
  if (piece.start[dim] < 0 || piece.count[dim] < 0 || piece.step(dim) < 1) return false;
  if (piece.count[dim] == 0) return true;
  auto last = last_index(piece, dim);
  if (!last) return false;
  if (dim > 0 || !variable.is_record) return *last < variable.shape[dim];
  std::int64_t end = 0;
  const auto record_bytes = std::max<std::int64_t>(1, variable.elements_below(0)) * variable.element_bytes;
  return !__builtin_add_overflow(*last, 1, &end) && !__builtin_mul_overflow(end, record_bytes, &end);
}

}  // namespace

std::int64_t VariableLayout::elements_below(std::size_t dim) const {
  std::int64_t elements = 1;
  for (std::size_t d = dim + 1; d < dims(); ++d) elements *= shape[d];
  return elements;
}

std::optional<std::int64_t> checked_elements(const VariableLayout &variable, const Piece &piece) {
  const auto dims = variable.dims();
  if (piece.start.size() != dims || piece.count.size() != dims) return std::nullopt;
  if (!piece.stride.empty() && piece.stride.size() != dims) return std::nullopt;
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    if (!fits(variable, piece, d)) return std::nullopt;
    if (__builtin_mul_overflow(elements, piece.count[d], &elements)) return std::nullopt;
  }
  return elements;
}

RunCursor::RunCursor(const VariableLayout &variable, const Piece &piece) {
  std::int64_t below = 1;
  bool whole = true;  // all dimensions further in are selected whole: a step here continues the run
  for (auto d = variable.dims(); d-- > 0;) {
    const auto count = piece.count[d], stride = piece.step(d);
    done_ = count == 0;
    if (done_) return;
    origin_ += piece.start[d] * below;
    if (whole && (stride == 1 || count == 1))
      run_elements_ = count * below;
    else if (count > 1)
      levels_.push_back({count, stride * below, 0});
    whole = whole && stride == 1 && piece.start[d] == 0 && count == variable.shape[d];
    below *= variable.shape[d];
  }
  position_ = origin_;
  left_ = run_elements_;
}

Rows RunCursor::rows_within(Interval bounds) const {
  if (position_ + left_ > bounds.end) return {{position_, bounds.end}};
  if (left_ < run_elements_ || levels_.empty()) return {run()};
  const auto &level = levels_.front();
  const auto fitting = (bounds.end - position_ - left_) / level.step + 1;
  return {run(), std::min(level.count - level.at, fitting), level.step};
}

void RunCursor::consume(const Rows &rows) {
  if (rows.count > 1) {
    levels_.front().at += rows.count - 1;
    origin_ += rows.step * (rows.count - 1);
  }
  consume(rows.first.size());
}

void RunCursor::next_run() {
  for (auto &level : levels_) {
    if (level.at + 1 < level.count) {
      ++level.at;
      position_ = origin_ += level.step;
      left_ = run_elements_;
      return;
    }
    origin_ -= level.step * level.at;
    level.at = 0;
  }
  done_ = true;
}

Interval bounds(const VariableLayout &variable, const Piece &piece) {
  Interval run{0, 1};
  std::int64_t below = 1;
  for (auto d = variable.dims(); d-- > 0;) {
    if (piece.count[d] == 0) return {0, 0};
    run.begin += piece.start[d] * below;
    run.end += (piece.start[d] + (piece.count[d] - 1) * piece.step(d)) * below;
    below *= variable.shape[d];
  }
  return run;
}

bool overlap(const Piece &a, const Piece &b) {
  const auto end = [](const Piece &p, std::size_t d) { return p.start[d] + (p.count[d] - 1) * p.step(d) + 1; };
  if (a.varid != b.varid) return false;
  for (std::size_t d = 0; d < std::min(a.start.size(), b.start.size()); ++d)
    if (a.start[d] >= end(b, d) || b.start[d] >= end(a, d)) return false;
  return true;
}

namespace {

constexpr std::size_t kFewPieces = 64;

std::int64_t size_of_union(std::vector<Interval> runs) {
  std::ranges::sort(runs, {}, &Interval::begin);
  std::int64_t elements = 0, end = 0;
  for (const auto run : runs) {
    elements += std::max<std::int64_t>(0, run.end - std::max(run.begin, end));
    end = std::max(end, run.end);
  }
  return elements;
}

bool any_overlap(std::span<const Piece> pieces) {
  for (std::size_t i = 1; i < pieces.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(pieces[i], pieces[j])) return true;
  return false;
}

}  // namespace

// Most pieces do not even interleave; taking apart those that do costs most.
std::int64_t covered_elements(const VariableLayout &variable, std::span<const Piece> pieces) {
  if (pieces.size() == 1) return pieces.front().elements();
  std::vector<Interval> runs;
  std::int64_t selected = 0, spanned = 0;
  for (const auto &piece : pieces) {
    runs.push_back(bounds(variable, piece));
    selected += piece.elements();
    spanned += runs.back().size();
  }
  if (size_of_union(runs) == spanned) return selected;
  if (pieces.size() <= kFewPieces && !any_overlap(pieces)) return selected;
  runs.clear();
  for (const auto &piece : pieces)
    for (RunCursor cursor(variable, piece); !cursor.done(); cursor.consume(cursor.run().size()))
      runs.push_back(cursor.run());
  return size_of_union(std::move(runs));
}

std::int64_t Box::elements() const {
  std::int64_t elements = 1;
  for (auto n : count) elements *= n;
  return elements;
}

namespace {

/// Joins `next` to `last` if the two differ in one dimension only, and meet there.
bool join(Box &last, const Box &next) {
  std::optional<std::size_t> along;
  for (std::size_t d = 0; d < last.start.size(); ++d) {
    if (last.start[d] == next.start[d] && last.count[d] == next.count[d]) continue;
    if (along || last.start[d] + last.count[d] != next.start[d]) return false;
    along = d;
  }
  if (!along) return false;
  last.count[*along] += next.count[*along];
  return true;
}

void push_box(Box box, std::vector<Box> &boxes) {
  boxes.push_back(std::move(box));
  while (boxes.size() > 1 && join(boxes[boxes.size() - 2], boxes.back())) boxes.pop_back();
}

/// Decomposes `run`, counted within the part of the variable that box.start[0, dim) fixes.
void decompose(const VariableLayout &variable, Box box, std::size_t dim, Interval run, std::vector<Box> &boxes) {
  if (run.size() == 0) return;
  if (dim == variable.dims()) return push_box(std::move(box), boxes);
  const auto row = variable.elements_below(dim);
  const auto first = run.begin / row, first_whole = (run.begin + row - 1) / row, last_whole = run.end / row;
  const auto at_row = [&](std::int64_t index, Interval within) {
    box.start[dim] = index;
    box.count[dim] = 1;
    decompose(variable, box, dim + 1, within, boxes);
  };
  if (first_whole > last_whole) return at_row(first, {run.begin - first * row, run.end - first * row});
  if (first < first_whole) at_row(first, {run.begin - first * row, row});
  if (first_whole < last_whole) {
    Box whole = box;
    whole.start[dim] = first_whole;
    whole.count[dim] = last_whole - first_whole;
    for (auto d = dim + 1; d < variable.dims(); ++d) whole.start[d] = 0, whole.count[d] = variable.shape[d];
    push_box(std::move(whole), boxes);
  }
  at_row(last_whole, {0, run.end - last_whole * row});
}

}  // namespace

void append_boxes(const VariableLayout &variable, Interval run, std::vector<Box> &boxes) {
  Box box;
  box.start.assign(variable.dims(), 0);
  box.count.assign(variable.dims(), 1);
  decompose(variable, std::move(box), 0, run, boxes);
}

std::vector<Box> boxes_of(const VariableLayout &variable, Interval run) {
  std::vector<Box> boxes;
  append_boxes(variable, run, boxes);
  return boxes;
}

std::string describe(const std::string &name, const Box &box) {
  if (box.start.empty()) return name;
  std::string text = name + "[";
  for (std::size_t d = 0; d < box.start.size(); ++d)
    text += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.start[d], box.start[d] + box.count[d] - 1);
  return text + "]";
}

SliceCursor::SliceCursor(const Piece &piece, int element_bytes, std::size_t max_bytes)
    : piece_(piece), slice_(piece), at_(piece.count.size(), 0) {
  std::int64_t inner = element_bytes;
  const auto limit = static_cast<std::int64_t>(max_bytes);
  cut_ = piece.count.size();
  while (cut_ > 0 && inner * piece.count[cut_ - 1] <= limit) inner *= piece.count[--cut_];
  if (cut_ > 0)
    --cut_, step_ = std::max<std::int64_t>(1, limit / inner);
  else
    cut_ = kUncut;
  for (auto n : piece.count) done_ = done_ || n == 0;
  if (!done_) fill_slice();
}

void SliceCursor::fill_slice() {
  elements_ = 1;
  for (std::size_t d = 0; d < at_.size(); ++d) {
    if (cut_ != kUncut && d < cut_) slice_.count[d] = 1;
    if (d == cut_) slice_.count[d] = std::min(step_, piece_.count[d] - at_[d]);
    slice_.start[d] = piece_.start[d] + at_[d] * piece_.step(d);
    elements_ *= slice_.count[d];
  }
}

void SliceCursor::next() {
  for (auto d = cut_ == kUncut ? 0 : cut_ + 1; d-- > 0;) {
    at_[d] += slice_.count[d];
    if (at_[d] < piece_.count[d]) return fill_slice();
    at_[d] = 0;
  }
  done_ = true;
}

}  // namespace nessie::service
