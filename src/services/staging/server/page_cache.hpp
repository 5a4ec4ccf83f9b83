// SPDX-License-Identifier: BSD-3-Clause
// The staging server's page cache: pulled data on their way to the file.
//
// Design notes. A variable's elements, in row-major order, are cut into pages of a fixed number of elements. A page
// holds data in host byte order and a bit for each element that was written and is not in the file yet. Pieces that
// many ranks write are scattered into pages, and leave as long consecutive writes. Pages lie in memory of a fixed
// budget; writable() says so when there is none left. The cache does no I/O and knows no threads: a page is taken out
// to be drained, and given back when it is in the file. An element written meanwhile goes to a new page, which is
// drained later.
#pragma once

#include <services/staging/index_space.hpp>
#include <services/staging/server/page_memory.hpp>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace staging {

class OpenFile;
class PageCache;
struct CachedVariable;

/// What a page waits for: the order in which pages are drained.
enum class PageState : unsigned {
  kUrgent,   ///< somebody waits for it to be in the file
  kClosing,  ///< its file is closed
  kFull,     ///< all of it was written
  kPartial,
};
inline constexpr std::size_t kPageStates = 4;

/// Counts down as pages reach the file (or fail to).
struct DrainWatch {
  std::size_t left = 0;
  std::function<void()> done;
};

class Page {
 public:
  Page(CachedVariable &owner, std::int64_t index, std::int64_t elements, PageMemory::Block memory);

  CachedVariable &owner() const { return *owner_; }
  /// Element number of the page's first element.
  std::int64_t first() const { return first_; }
  std::int64_t elements() const { return elements_; }
  std::int64_t dirty_elements() const { return dirty_; }
  bool full() const { return dirty_ == elements_; }
  std::byte *data() const { return memory_.data; }
  std::uint64_t charged_bytes() const { return memory_.size_bytes; }
  void mark_dirty(const Rows &rows);  ///< element numbers of the variable
  bool covers(Interval run) const;    ///< all of `run`, which lies in the page, is dirty
  /// The first run of dirty elements at or behind `from`, an element number of the variable; empty if there is none.
  Interval dirty_run(std::int64_t from) const;
  Interval dirty_bounds() const;

 private:
  friend class PageCache;
  void set_bits(Interval bits);
  CachedVariable *owner_;
  std::int64_t index_, first_, elements_, dirty_ = 0;
  PageMemory::Block memory_;  ///< data, then the bits
  std::uint64_t *bits_;
  PageState state_ = PageState::kPartial;
  std::list<Page *>::iterator in_order_;
  std::vector<std::shared_ptr<DrainWatch>> watches_;
};

/// A variable's pages.
struct CachedVariable {
  Variable variable;
  std::int64_t page_elements = 1;
  std::map<std::int64_t, std::unique_ptr<Page>> pages;  ///< by index
  std::vector<Page *> draining;                         ///< taken out, oldest first
  std::uint64_t dirty_bytes = 0;                        ///< of pages and of draining
  OpenFile *file = nullptr;                             ///< whose variable it is; the cache does not look at it

  /// Holds all dirty elements.
  Interval dirty_bounds() const;
};

class PageCache {
 public:
  explicit PageCache(std::uint64_t budget_bytes);
  ~PageCache();

  /// Prepares a variable to have pages.
  std::unique_ptr<CachedVariable> adopt(Variable variable) const;

  /// The page of an element, made if need be; null if the budget is short: drain some and come again. While no page
  /// exists at all, there is always memory for one.
  Page *writable(CachedVariable &variable, std::int64_t element);
  /// Marks elements of a page as written.
  void wrote(Page &page, const Rows &rows);

  /// Copies all of `piece` to `destination` if all of it is in pages, and none of it is draining.
  bool gather(const CachedVariable &variable, const Piece &piece, std::byte *destination) const;

  /// Asks for the pages that meet `within` to be drained with `state`, and has `watch`, if there is one, told of each,
  /// and of those that are draining already.
  void request_drain(CachedVariable &variable, Interval within, PageState state,
                     const std::shared_ptr<DrainWatch> &watch);
  /// Takes out the oldest page of the first state, up to and including `last`, that has one. Null: none.
  std::unique_ptr<Page> take(PageState last);
  /// The page is in the file, or given up: its memory is free. Tells the watches.
  void give_back(std::unique_ptr<Page> page);

  PageMemory &memory() { return memory_; }
  std::uint64_t used_bytes() const { return memory_.used_bytes(); }
  std::uint64_t high_bytes() const { return memory_.high_bytes(); }

 private:
  void move(Page &page, PageState state);
  std::list<Page *> &order(PageState state) { return order_[static_cast<std::size_t>(state)]; }

  PageMemory memory_;
  std::size_t page_bytes_;
  std::list<Page *> order_[kPageStates];  ///< oldest first
};

/// Puts the data of one piece into pages, as far as the budget lets at a time.
class Scatter {
 public:
  /// `data` is borrowed.
  Scatter(CachedVariable &variable, const Piece &piece, const std::byte *data)
      : variable_(variable), cursor_(variable.variable, piece), data_(data) {}
  /// True when all is in place; false when a page could not be had: call again when there is memory.
  bool advance(PageCache &cache);

 private:
  CachedVariable &variable_;
  RunCursor cursor_;
  const std::byte *data_;
};

/// Packs `box` of a page's data to `out`; returns the end of what was written.
std::byte *pack(const Page &page, const Variable &variable, const Box &box, std::byte *out);

}  // namespace staging
