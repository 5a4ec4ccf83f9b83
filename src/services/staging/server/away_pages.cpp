// SPDX-License-Identifier: BSD-3-Clause
// Pages that leave the memory while they wait, and come back to be drained.
#include <services/staging/server/page_cache.hpp>

#include <algorithm>
#include <utility>

namespace staging {

namespace {

constexpr std::uint64_t kLeastShare = 3;  // of the budget the reserve takes one in so many at most

}  // namespace

bool PageCache::reserve(std::size_t pages) {
  const auto size = most_page_bytes();
  if (pages * size * kLeastShare > budget_bytes()) return false;
  while (reserve_.size() < pages) {
    const auto block = memory_.reserve(size);
    if (!block) return false;
    reserve_.push_back(block);
  }
  return true;
}

// What waits for its file to be written, or is whole, is not changed any more; what somebody waits for is to leave for
// the file.
Page *PageCache::next_to_leave_memory() const {
  using enum PageState;
  for (const auto state : {kHeldBack, kFull, kClosing, kPartial, kUrgent}) {
    const auto &pages = order_[static_cast<std::size_t>(state)];
    const auto found =
        std::ranges::find_if(pages, [](const Page *page) { return page->dirty_ > 0 && page->pins_ == 0; });
    if (found != pages.end()) return *found;
  }
  return nullptr;
}

void PageCache::leave_memory(Page &page) {
  page.is_away_ = true;
  if (std::exchange(page.is_in_reserve_, false))
    reserve_.push_back(page.memory_);
  else
    memory_.free(page.memory_);
  page.memory_ = {};
  page.bits_ = nullptr;
}

void PageCache::prepare_return(Page &page) {
  page.is_in_reserve_ = true;
  page.take_place(reserve_.back());
  reserve_.pop_back();
  if (page.is_one_run()) note_loss(page);
}

void PageCache::note_loss(Page &page) {
  const auto bounds = page.bounds_;
  const auto dirty = page.dirty_;
  const auto sum = page.sum_;
  const bool is_summed = page.is_summed_;
  page.empty();
  note_present(page, bounds);
  page.dirty_ = dirty;
  page.bounds_ = bounds;
  page.sum_ = sum;
  page.is_summed_ = is_summed;
}

}  // namespace staging
