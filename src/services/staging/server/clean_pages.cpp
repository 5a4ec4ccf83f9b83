// SPDX-License-Identifier: BSD-3-Clause
// Pages that are in the file, kept for readers.
#include <services/staging/server/page_cache.hpp>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

namespace staging {

void PageCache::attach_clean(std::unique_ptr<Page> page, PageState state) {
  auto &variable = page->owner();
  auto &last = order(state);
  forget(variable, page->index_);
  page->state_ = state;
  page->in_order_ = last.insert(last.end(), page.get());
  page->is_attached_ = true;
  page->bounds_ = {};
  clean_bytes_ += page->charged_bytes();
  (state == PageState::kLoaded ? loaded_bytes_ : wanted_bytes_) += page->charged_bytes();
  const auto index = page->index_;
  variable.clean[index] = std::move(page);
}

PageCache::Found PageCache::find(CachedVariable &variable, std::int64_t element) {
  const auto index = element / variable.page_elements;
  const auto held = variable.pages.find(index);
  Page *newest = held != variable.pages.end() ? held->second.get() : nullptr;
  bool is_split = false;
  for (auto *leaving : std::views::reverse(variable.draining)) {
    if (leaving->index_ != index) continue;
    is_split = newest != nullptr;
    if (is_split) break;
    newest = leaving;
  }
  if (newest != nullptr && (newest->is_away() || (is_split && !newest->full()))) return {nullptr, true};
  if (newest != nullptr) return {newest};
  const auto clean = variable.clean.find(index);
  if (clean == variable.clean.end()) return {};
  has_readers_ = has_readers_ || clean->second->state_ == PageState::kClean;
  auto &last = order(clean->second->state_);
  last.splice(last.end(), last, clean->second->in_order_);
  return {clean->second.get()};
}

/// What was only read is likely to have been of use already. False: there is none that nobody reads just now.
bool PageCache::give_up_oldest() { return give_up_oldest(PageState::kLoaded) || give_up_oldest(PageState::kClean); }

bool PageCache::give_up_oldest(PageState state) {
  auto &pages = order(state);
  const auto found = std::ranges::find_if(pages, [](const Page *page) { return page->pins_ == 0; });
  if (found == pages.end()) return false;
  release(extract(**found));
  return true;
}

void PageCache::forget(CachedVariable &variable) {
  while (!variable.clean.empty()) release(extract(*variable.clean.begin()->second));
  for (auto &[index, loading] : variable.loading) loading->variable = nullptr;
  variable.loading.clear();
}

void PageCache::forget(CachedVariable &variable, std::int64_t index) {
  if (const auto found = variable.clean.find(index); found != variable.clean.end()) release(extract(*found->second));
  const auto loading = variable.loading.find(index);
  if (loading == variable.loading.end()) return;
  loading->second->variable = nullptr;
  variable.loading.erase(loading);
}

void PageCache::hand_over(CachedVariable &from, CachedVariable &to) {
  for (auto &[index, page] : from.clean) page->owner_ = &to;
  to.clean = std::exchange(from.clean, {});
}

/// Somebody is about to write there: what is known of the file holds no more. A clean page, emptied, if there is one.
Page *PageCache::take_over(CachedVariable &variable, std::int64_t index) {
  const auto found = variable.clean.find(index);
  if (found == variable.clean.end() || found->second->pins_ > 0) {
    forget(variable, index);
    return nullptr;
  }
  auto page = extract(*found->second);
  page->empty();
  return attach(std::move(page));
}

namespace {

bool covers(const Page &page, const Rows &rows) {
  if (page.full()) return true;
  auto row = rows.first;
  for (std::int64_t i = 0; i < rows.count; ++i, row.begin += rows.step, row.end += rows.step)
    if (!page.covers(row)) return false;
  return true;
}

}  // namespace

Gather::State Gather::advance(PageCache &cache) {
  const Page *page = nullptr;
  while (!cursor_.done()) {
    if (page == nullptr || !page->has_place_for(position())) {
      const auto found = cache.find(variable_, position());
      if (found.page == nullptr) return found.is_split ? State::kDirty : State::kMissing;
      page = found.page;
    }
    if (!copy_from(*page)) return page->is_clean() ? State::kMissing : State::kDirty;
  }
  return State::kDone;
}

bool Gather::copy_from(const Page &page) {
  const auto rows = cursor_.rows_within(page.range());
  if (!covers(page, rows)) return false;
  const auto element_bytes = variable_.variable.element_bytes;
  const auto row_bytes = static_cast<std::size_t>(rows.first.size() * element_bytes);
  const auto *from = page.at(rows.first.begin);
  for (std::int64_t row = 0; row < rows.count; ++row, from += rows.step * element_bytes, data_ += row_bytes)
    std::memcpy(data_, from, row_bytes);
  cursor_.consume(rows);
  return true;
}

}  // namespace staging
