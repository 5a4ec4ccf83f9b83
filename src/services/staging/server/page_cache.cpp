// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_cache.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace staging {

namespace {

constexpr std::size_t kMaxPageBytes = 1 << 20, kMinPageBytes = 4 << 10;
constexpr std::int64_t kMaxPageElements = 1 << 20;  // bounds the bits of a page to 128 KiB, where elements are bytes
constexpr std::int64_t kWordBits = 64;
constexpr std::size_t kPagesInSmallBudget = 16;
constexpr std::int64_t kManyRecordsBytes = 64 << 10;
constexpr std::uint64_t kManyLoaded = 24 << 20;

std::size_t words(std::int64_t elements) { return static_cast<std::size_t>((elements + kWordBits - 1) / kWordBits); }

std::size_t bits_offset(std::int64_t elements, int element_bytes) {
  return (static_cast<std::size_t>(elements * element_bytes) + 63) / 64 * 64;
}

std::size_t page_bytes_for(std::uint64_t budget_bytes) {
  return std::clamp(std::bit_floor(static_cast<std::size_t>(budget_bytes / kPagesInSmallBudget)), kMinPageBytes,
                    kMaxPageBytes);
}

std::size_t most_bytes(std::size_t page_bytes) {
  const auto most = std::min<std::int64_t>(static_cast<std::int64_t>(page_bytes), kMaxPageElements);
  return page_bytes + words(most) * sizeof(std::uint64_t);
}

/// The bits of a word that lie within [begin, end), which are positions relative to the word's first bit.
std::uint64_t mask(std::int64_t begin, std::int64_t end) {
  const auto low = ~std::uint64_t{0} << std::max<std::int64_t>(begin, 0);
  return end >= kWordBits ? low : low & ~(~std::uint64_t{0} << end);
}

}  // namespace

CachedVariable::~CachedVariable() {
  if (!clean.empty() || !loading.empty()) cache->forget(*this);
}

Page::Page(CachedVariable &owner, std::int64_t index, std::int64_t elements, PageMemory::Block memory, bool is_blank)
    : owner_(&owner), index_(index), first_(index * owner.page_elements), elements_(elements) {
  take_place(memory);
  if (!is_blank) empty();
}

void Page::take_place(PageMemory::Block memory) {
  memory_ = memory;
  bits_ = reinterpret_cast<std::uint64_t *>(memory.data + bits_offset(elements_, owner_->variable.element_bytes));
}

std::span<std::byte> Page::image() const {
  auto *begin = at(bounds_.begin);
  auto *end = is_one_run() ? at(bounds_.end) : reinterpret_cast<std::byte *>(bits_ + words(elements_));
  return {begin, end};
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

void Page::empty() {
  std::memset(bits_, 0, words(elements_) * sizeof *bits_);
  dirty_ = 0;
  bounds_ = {};
  sum_ = 0;
  is_summed_ = owner_->cache->sums();
}

void Page::mark_dirty(const Rows &rows) {
  auto begin = rows.first.begin - first_;
  for (std::int64_t row = 0; row < rows.count; ++row, begin += rows.step) set_bits({begin, begin + rows.first.size()});
  bounds_ = hull(bounds_, {rows.first.begin, rows.first.end + (rows.count - 1) * rows.step});
}

void PageCache::note_present(Page &page, Interval elements) {
  page.set_bits({elements.begin - page.first(), elements.end - page.first()});
}

bool Page::has_dirty(Interval elements) const {
  const auto begin = elements.begin - first_, end = elements.end - first_;
  for (auto at = begin / kWordBits * kWordBits; at < end; at += kWordBits)
    if ((bits_[at / kWordBits] & mask(begin - at, end - at)) != 0) return true;
  return false;
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

Interval CachedVariable::dirty_bounds() const {
  Interval all;
  for (const Page *page : draining) all = hull(all, page->dirty_bounds());
  if (pages.empty()) return all;
  return hull(all, hull(pages.begin()->second->dirty_bounds(), pages.rbegin()->second->dirty_bounds()));
}

PageCache::PageCache(std::uint64_t budget_bytes, nessie::Budget::Account &account, bool sums)
    : memory_(budget_bytes, most_bytes(page_bytes_for(budget_bytes)), account),
      sums_(sums),
      page_bytes_(page_bytes_for(budget_bytes)) {}

PageCache::~PageCache() = default;

std::size_t PageCache::most_page_bytes() const { return most_bytes(page_bytes_); }

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

// A variable smaller than a page gets one page of its own size; a record variable, pages of one record, or of as many
// small ones as are worth a page: a thousand small variables must not take a thousand large pages, nor two records the
// memory of eight.
std::unique_ptr<CachedVariable> PageCache::adopt(Variable variable) {
  auto cached = std::make_unique<CachedVariable>();
  cached->cache = this;
  const auto many = std::min(kManyRecordsBytes, static_cast<std::int64_t>(page_bytes_)) / variable.element_bytes;
  const auto most =
      whole_rows(variable, std::min(static_cast<std::int64_t>(page_bytes_) / variable.element_bytes, kMaxPageElements));
  const auto extent = std::max<std::int64_t>(1, variable.extent_elements());
  if (!variable.is_record)
    cached->page_elements = std::min(most, extent);
  else
    cached->page_elements = std::min(most, extent * std::max<std::int64_t>(1, many / extent));
  cached->variable = std::move(variable);
  return cached;
}

namespace {

/// Elements of the page at `index`: the last page of a fixed-size variable may be shorter.
std::int64_t elements_of_page(const CachedVariable &variable, std::int64_t index) {
  if (variable.variable.is_record) return variable.page_elements;
  return std::min(variable.page_elements, variable.variable.extent_elements() - index * variable.page_elements);
}

/// With its bits.
std::size_t size_of_page(const CachedVariable &variable, std::int64_t elements) {
  return bits_offset(elements, variable.variable.element_bytes) + words(elements) * sizeof(std::uint64_t);
}

}  // namespace

// Where many pages were read from files already, the next ones take their place before the kernel is asked for more
// memory: that takes it a good part of the time in which they are read.
PageMemory::Block PageCache::memory_to_read(std::size_t size_bytes) {
  auto memory = memory_.allocate(size_bytes, true);
  while (!memory && loaded_bytes_ > kManyLoaded && give_up_oldest(PageState::kLoaded)) {
    wanted_bytes_ += size_bytes;
    memory = memory_.allocate(size_bytes, true);
  }
  return memory ? memory : any_memory(size_bytes, true);
}

/// Nobody who writes waits for the kernel because of clean pages.
PageMemory::Block PageCache::memory_to_write(std::size_t size_bytes, bool grows) {
  auto memory = memory_.allocate(size_bytes, true);
  const auto enough = clean_bytes_ - std::min(clean_bytes_, std::uint64_t{2 * size_bytes});
  while (!memory && clean_bytes_ > enough && give_up_oldest()) memory = memory_.allocate(size_bytes, true);
  return memory || !grows ? memory : any_memory(size_bytes, true);
}

PageMemory::Block PageCache::any_memory(std::size_t size_bytes, bool takes_place) {
  auto memory = memory_.allocate(size_bytes);
  while (!memory && takes_place && give_up_oldest()) memory = memory_.allocate(size_bytes);
  return memory;
}

std::unique_ptr<Page> PageCache::blank(CachedVariable &variable, std::int64_t index, bool takes_place) {
  const auto elements = elements_of_page(variable, index);
  const auto size = size_of_page(variable, elements);
  auto memory = takes_place ? memory_to_read(size) : any_memory(size, false);
  if (!memory) return nullptr;
  auto page = std::make_unique<Page>(variable, index, elements, memory, true);
  page->is_attached_ = false;
  return page;
}

Page *PageCache::writable(CachedVariable &variable, std::int64_t element, bool grows) {
  const auto index = element / variable.page_elements;
  if (variable.latest != nullptr && variable.latest->index_ == index) return variable.latest;
  if (auto found = variable.pages.find(index); found != variable.pages.end())
    return variable.latest = found->second.get();
  if (auto *page = take_over(variable, index)) return variable.latest = page;
  const auto elements = elements_of_page(variable, index);
  auto memory = memory_to_write(size_of_page(variable, elements), grows);
  if (!memory) return nullptr;
  return variable.latest = attach(std::make_unique<Page>(variable, index, elements, memory));
}

/// A page in which nothing is dirty yet.
Page *PageCache::attach(std::unique_ptr<Page> page) {
  auto &partial = order(PageState::kPartial);
  page->state_ = PageState::kPartial;
  page->in_order_ = partial.insert(partial.end(), page.get());
  page->is_attached_ = true;
  auto &pages = page->owner().pages;
  const auto index = page->index_;
  return pages.emplace(index, std::move(page)).first->second.get();
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

void PageCache::request_drain(CachedVariable &variable, Interval within, PageState state,
                              const std::shared_ptr<DrainWatch> &watch) {
  const auto ask = [&](Page &page) {
    if (watch == nullptr || page.dirty_elements() == 0) return;
    page.watches_.push_back(watch);
    ++watch->left;
  };
  for (Page *page : variable.draining)
    if (page->first() < within.end && page->range().end > within.begin) ask(*page);
  auto at = variable.pages.lower_bound(within.begin / variable.page_elements);
  for (; at != variable.pages.end() && at->second->first() < within.end; ++at) {
    ask(*at->second);
    if (at->second->state_ == PageState::kHeldBack)
      at->second->held_state_ = std::min(at->second->held_state_, state);
    else if (state < at->second->state_)
      move(*at->second, state);
  }
}

Page *PageCache::next(PageState last) const {
  for (std::size_t state = 0; state <= static_cast<std::size_t>(last); ++state)
    for (Page *page : order_[state])
      if (page->dirty_ > 0) return page;
  return nullptr;
}

void PageCache::hold_back(Page &page) {
  page.held_state_ = page.state_;
  move(page, PageState::kHeldBack);
}

std::vector<Page *> PageCache::held_back(const OpenFile &file) {
  std::vector<Page *> pages;
  std::ranges::copy_if(order(PageState::kHeldBack), std::back_inserter(pages),
                       [&](const Page *page) { return page->owner().file == &file; });
  return pages;
}

void PageCache::go_on(const OpenFile &file) {
  for (Page *page : held_back(file)) go_on(*page);
}

void PageCache::go_on(CachedVariable &variable, std::int64_t index) {
  const auto found = variable.pages.find(index);
  if (found != variable.pages.end() && found->second->state_ == PageState::kHeldBack) go_on(*found->second);
}

void PageCache::go_on(Page &page) {
  move(page, page.full() ? std::min(page.held_state_, PageState::kFull) : page.held_state_);
}

std::unique_ptr<Page> PageCache::take(Page &page) {
  page.number_ = ++taken_;
  page.owner().draining.push_back(&page);
  return extract(page);
}

std::unique_ptr<Page> PageCache::extract(Page &page) {
  auto &variable = page.owner();
  order(page.state_).erase(page.in_order_);
  if (variable.latest == &page) variable.latest = nullptr;
  page.is_attached_ = false;
  if (page.is_clean()) clean_bytes_ -= page.charged_bytes();
  if (page.state_ == PageState::kLoaded) loaded_bytes_ -= page.charged_bytes();
  auto &pages = page.is_clean() ? variable.clean : variable.pages;
  return std::move(pages.extract(page.index_).mapped());
}

void PageCache::unpin(Page &page) {
  if (--page.pins_ > 0) return;
  if (page.is_given_back_)
    release(std::unique_ptr<Page>(&page));
  else if (page.is_attached_ && !page.is_clean() && page.dirty_ == 0)
    release(extract(page));
}

bool PageCache::put_back(Page &page) {
  if (!page.is_given_back_ || page.owner_->pages.contains(page.index_)) return false;
  forget(*page.owner_, page.index_);
  page.is_given_back_ = false;
  page.empty();
  attach(std::unique_ptr<Page>(&page));
  return true;
}

void PageCache::release(std::unique_ptr<Page> page) {
  page->is_given_back_ = true;
  if (page->pins_ > 0)
    (void)page.release();  // unpin() has it
  else if (page->is_in_reserve_)
    reserve_.push_back(page->memory_);
  else
    memory_.free(page->memory_);
}

void PageCache::give_back(std::unique_ptr<Page> page, int nc_error) {
  auto &variable = page->owner();
  variable.dirty_bytes -= static_cast<std::uint64_t>(page->dirty_ * variable.variable.element_bytes);
  std::erase(variable.draining, page.get());
  const auto watches = std::exchange(page->watches_, {});
  const bool stays = nc_error == 0 && variable.keeps_clean && page->pins_ == 0 && !page->is_in_reserve_ &&
                     !variable.pages.contains(page->index_);
  if (stays)
    attach_clean(std::move(page), PageState::kClean);
  else
    release(std::move(page));
  for (const auto &watch : watches) {
    if (watch->nc_error == 0) watch->nc_error = nc_error;
    if (--watch->left == 0 && watch->done) watch->done();
  }
}

bool Scatter::advance(PageCache &cache, bool grows) {
  const auto element_bytes = variable_.variable.element_bytes;
  Page *page = nullptr;
  while (!cursor_.done()) {
    const auto at = cursor_.run().begin;
    if (page == nullptr || !page->has_place_for(at)) page = cache.writable(variable_, at, grows);
    if (page == nullptr) return false;
    const auto rows = cursor_.rows_within(page->range());
    page->put(rows, data_);
    data_ += rows.size() * element_bytes;
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
    std::memcpy(out, page.at(run.begin), run.size() * element_bytes);
    out += run.size() * element_bytes;
  }
  return out;
}

}  // namespace staging
