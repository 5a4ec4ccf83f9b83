// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_cache.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace staging {

namespace {

constexpr std::size_t kMaxPageBytes = 1 << 20, kMinPageBytes = 4 << 10;
constexpr std::int64_t kMaxPageElements = 1 << 18;  // bounds the bits of a page to 32 KiB
constexpr std::int64_t kWordBits = 64;
constexpr std::size_t kPagesInSmallBudget = 16;
constexpr std::int64_t kRecordsInPage = 8;

std::size_t words(std::int64_t elements) { return static_cast<std::size_t>((elements + kWordBits - 1) / kWordBits); }

std::size_t bits_offset(std::int64_t elements, int element_bytes) {
  return (static_cast<std::size_t>(elements * element_bytes) + 63) / 64 * 64;
}

std::size_t page_bytes_for(std::uint64_t budget_bytes) {
  return std::clamp(std::bit_floor(static_cast<std::size_t>(budget_bytes / kPagesInSmallBudget)), kMinPageBytes,
                    kMaxPageBytes);
}

std::size_t frame_bytes(std::size_t page_bytes) {
  const auto most = std::min<std::int64_t>(static_cast<std::int64_t>(page_bytes), kMaxPageElements);
  return page_bytes + words(most) * sizeof(std::uint64_t);
}

/// The bits of a word that lie within [begin, end), which are positions relative to the word's first bit.
std::uint64_t mask(std::int64_t begin, std::int64_t end) {
  const auto low = ~std::uint64_t{0} << std::max<std::int64_t>(begin, 0);
  return end >= kWordBits ? low : low & ~(~std::uint64_t{0} << end);
}

}  // namespace

Page::Page(CachedVariable &owner, std::int64_t index, std::int64_t elements, PageMemory::Block memory)
    : owner_(&owner),
      index_(index),
      first_(index * owner.page_elements),
      elements_(elements),
      memory_(memory),
      bits_(reinterpret_cast<std::uint64_t *>(memory.data + bits_offset(elements, owner.variable.element_bytes))) {
  std::memset(bits_, 0, words(elements) * sizeof *bits_);
}

inline void Page::set_bits(Interval bits) {
  const auto begin = bits.begin, end = bits.end;
  for (auto at = begin / kWordBits * kWordBits; at < end; at += kWordBits) {
    auto &word = bits_[at / kWordBits];
    const auto set = mask(begin - at, end - at), fresh = set & ~word;
    // Most of what is written was clean before; counting bits is a call on machines that cannot be relied on to do it.
    dirty_ += fresh == set ? std::min(end, at + kWordBits) - std::max(begin, at) : std::popcount(fresh);
    word |= set;
  }
}

void Page::mark_dirty(const Rows &rows) {
  auto begin = rows.first.begin - first_;
  for (std::int64_t row = 0; row < rows.count; ++row, begin += rows.step) set_bits({begin, begin + rows.first.size()});
}

bool Page::covers(Interval run) const {
  if (full()) return true;
  const auto begin = run.begin - first_, end = run.end - first_;
  for (auto at = begin / kWordBits * kWordBits; at < end; at += kWordBits) {
    const auto set = mask(begin - at, end - at);
    if ((bits_[at / kWordBits] & set) != set) return false;
  }
  return true;
}

namespace {

/// The first of the bits [from, end) that is set, or is clear; `end` if none is.
std::int64_t find_bit(const std::uint64_t *bits, std::int64_t from, std::int64_t end, bool set) {
  for (; from < end; from = (from / kWordBits + 1) * kWordBits) {
    const auto word = (set ? bits[from / kWordBits] : ~bits[from / kWordBits]) >> from % kWordBits;
    if (word != 0) return std::min(end, from + std::countr_zero(word));
  }
  return end;
}

}  // namespace

Interval Page::dirty_run(std::int64_t from) const {
  const auto begin = find_bit(bits_, from - first_, elements_, true);
  return {first_ + begin, first_ + find_bit(bits_, begin, elements_, false)};
}

Interval Page::dirty_bounds() const {
  std::size_t low = 0, high = words(elements_);
  if (dirty_ == 0) return {first_, first_};
  while (bits_[low] == 0) ++low;
  while (bits_[high - 1] == 0) --high;
  return {first_ + static_cast<std::int64_t>(low) * kWordBits + std::countr_zero(bits_[low]),
          first_ + static_cast<std::int64_t>(high) * kWordBits - std::countl_zero(bits_[high - 1])};
}

Interval CachedVariable::dirty_bounds() const {
  Interval all;
  for (const Page *page : draining) all = hull(all, page->dirty_bounds());
  if (pages.empty()) return all;
  return hull(all, hull(pages.begin()->second->dirty_bounds(), pages.rbegin()->second->dirty_bounds()));
}

PageCache::PageCache(std::uint64_t budget_bytes)
    : memory_(budget_bytes, frame_bytes(page_bytes_for(budget_bytes))), page_bytes_(page_bytes_for(budget_bytes)) {}

PageCache::~PageCache() = default;

namespace {

/// At most `most` elements, rounded down to whole rows, planes, … so that a page is one box, where that wastes little.
std::int64_t whole_rows(const Variable &variable, std::int64_t most) {
  for (std::size_t d = 0; d < variable.dims(); ++d) {
    const auto row = std::max<std::int64_t>(1, variable.elements_below(d));
    if (const auto rounded = most / row * row; rounded > most / 4 * 3) return rounded;
  }
  return most;
}

}  // namespace

// A variable smaller than a page gets one page of its own size; a record variable with small records, pages of a few
// records: a thousand small variables must not take a thousand large pages.
std::unique_ptr<CachedVariable> PageCache::adopt(Variable variable) const {
  auto cached = std::make_unique<CachedVariable>();
  const auto least = static_cast<std::int64_t>(kMinPageBytes) / variable.element_bytes;
  const auto most =
      whole_rows(variable, std::min(static_cast<std::int64_t>(page_bytes_) / variable.element_bytes, kMaxPageElements));
  const auto extent = std::max<std::int64_t>(1, variable.extent_elements());
  if (!variable.is_record)
    cached->page_elements = std::min(most, extent);
  else
    cached->page_elements = extent >= most ? most : std::clamp(extent * kRecordsInPage, least, most);
  cached->variable = std::move(variable);
  return cached;
}

namespace {

/// Elements of the page at `index`: the last page of a fixed-size variable may be shorter.
std::int64_t elements_of_page(const CachedVariable &variable, std::int64_t index) {
  if (variable.variable.is_record) return variable.page_elements;
  return std::min(variable.page_elements, variable.variable.extent_elements() - index * variable.page_elements);
}

}  // namespace

Page *PageCache::writable(CachedVariable &variable, std::int64_t element) {
  const auto index = element / variable.page_elements;
  if (auto found = variable.pages.find(index); found != variable.pages.end()) return found->second.get();
  const auto elements = elements_of_page(variable, index);
  auto memory = memory_.allocate(bits_offset(elements, variable.variable.element_bytes) +
                                 words(elements) * sizeof(std::uint64_t));
  if (!memory) return nullptr;
  auto page = std::make_unique<Page>(variable, index, elements, memory);
  auto &partial = order(PageState::kPartial);
  page->in_order_ = partial.insert(partial.end(), page.get());
  return variable.pages.emplace(index, std::move(page)).first->second.get();
}

void PageCache::wrote(Page &page, const Rows &rows) {
  const auto before = page.dirty_;
  page.mark_dirty(rows);
  page.owner_->dirty_bytes += static_cast<std::uint64_t>((page.dirty_ - before) * page.owner_->variable.element_bytes);
  if (page.full() && page.state_ == PageState::kPartial) move(page, PageState::kFull);
}

void PageCache::move(Page &page, PageState state) {
  auto &to = order(state);
  to.splice(to.end(), order(page.state_), page.in_order_);
  page.state_ = state;
}

bool PageCache::gather(const CachedVariable &variable, const Piece &piece, std::byte *destination) const {
  const auto element_bytes = variable.variable.element_bytes;
  for (RunCursor cursor(variable.variable, piece); !cursor.done();) {
    const auto run = cursor.run();
    const auto found = variable.pages.find(run.begin / variable.page_elements);
    if (found == variable.pages.end()) return false;
    const Page &page = *found->second;
    const Interval part{run.begin, std::min(run.end, page.first() + page.elements())};
    if (!page.covers(part)) return false;
    std::memcpy(destination, page.data() + (part.begin - page.first()) * element_bytes, part.size() * element_bytes);
    destination += part.size() * element_bytes;
    cursor.consume(part.size());
  }
  return true;
}

void PageCache::request_drain(CachedVariable &variable, Interval within, PageState state,
                              const std::shared_ptr<DrainWatch> &watch) {
  const auto ask = [&](Page &page) {
    if (watch == nullptr) return;
    page.watches_.push_back(watch);
    ++watch->left;
  };
  for (Page *page : variable.draining)
    if (page->first() < within.end && page->first() + page->elements() > within.begin) ask(*page);
  auto at = variable.pages.lower_bound(within.begin / variable.page_elements);
  for (; at != variable.pages.end() && at->second->first() < within.end; ++at) {
    ask(*at->second);
    if (state < at->second->state_) move(*at->second, state);
  }
}

std::unique_ptr<Page> PageCache::take(PageState last) {
  for (std::size_t state = 0; state <= static_cast<std::size_t>(last); ++state) {
    if (order_[state].empty()) continue;
    Page *page = order_[state].front();
    order_[state].pop_front();
    auto &variable = page->owner();
    auto node = variable.pages.extract(page->index_);
    variable.draining.push_back(page);
    return std::move(node.mapped());
  }
  return nullptr;
}

void PageCache::give_back(std::unique_ptr<Page> page) {
  auto &variable = page->owner();
  variable.dirty_bytes -= static_cast<std::uint64_t>(page->dirty_ * variable.variable.element_bytes);
  std::erase(variable.draining, page.get());
  memory_.free(page->memory_);
  for (auto &watch : page->watches_)
    if (--watch->left == 0 && watch->done) watch->done();
}

bool Scatter::advance(PageCache &cache) {
  const auto element_bytes = variable_.variable.element_bytes;
  Page *page = nullptr;
  while (!cursor_.done()) {
    const auto at = cursor_.run().begin;
    if (page == nullptr || at < page->first() || at >= page->first() + page->elements())
      page = cache.writable(variable_, at);
    if (page == nullptr) return false;
    const auto rows = cursor_.rows_within({page->first(), page->first() + page->elements()});
    const auto row_bytes = static_cast<std::size_t>(rows.first.size() * element_bytes);
    auto *to = page->data() + (at - page->first()) * element_bytes;
    for (std::int64_t row = 0; row < rows.count; ++row, to += rows.step * element_bytes, data_ += row_bytes)
      std::memcpy(to, data_, row_bytes);
    cache.wrote(*page, rows);
    cursor_.consume(rows);
  }
  return true;
}

std::byte *pack(const Page &page, const Variable &variable, const Box &box, std::byte *out) {
  const auto element_bytes = variable.element_bytes;
  const Piece piece{variable.varid, box.start, box.count, {}};
  for (RunCursor cursor(variable, piece); !cursor.done(); cursor.consume(cursor.run().size())) {
    const auto run = cursor.run();
    std::memcpy(out, page.data() + (run.begin - page.first()) * element_bytes, run.size() * element_bytes);
    out += run.size() * element_bytes;
  }
  return out;
}

}  // namespace staging
