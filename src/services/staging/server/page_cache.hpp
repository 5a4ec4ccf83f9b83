// SPDX-License-Identifier: BSD-3-Clause
// The staging server's page cache: pulled data on their way to the file.
//
// Design notes. A variable's elements, in row-major order, are cut into pages of a fixed number of elements. A page
// holds data in host byte order and a bit for each element that was written and is not in the file yet. Pieces that
// many ranks write are scattered into pages, and leave as long consecutive writes. Pages lie in memory of a fixed
// budget; writable() says so when there is none left. The cache does no I/O and knows no threads: a page is taken out
// to be drained, and given back when it is in the file. An element written meanwhile goes to a new page, which is
// drained later. What is in the file may stay for readers, as a clean page, and pages are read from there for them:
// these are the first to go when memory is wanted, those that nobody has read for longest before the others, and
// whoever writes to one has an empty page in its place.
//
// A page has a checksum of what was written to it, made when it is written, and looked at before it goes to the file
// (page_sum.cpp).
#pragma once

#include <services/staging/piece.hpp>
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
  kHeldBack,  ///< its file cannot be written just now
  kClean,     ///< nothing: what was written to it is in the file
  kLoaded,    ///< nothing: it was read from the file
};
inline constexpr std::size_t kPageStates = 7;

/// Counts down as pages reach the file (or fail to).
struct DrainWatch {
  std::size_t left = 0;
  int nc_error = 0;  ///< the first that one of them met
  std::function<void()> done;
};

class Page {
 public:
  /// Its elements are clean, or, `is_blank`, nothing is known of them until it is emptied.
  Page(CachedVariable &owner, std::int64_t index, std::int64_t elements, PageMemory::Block memory,
       bool is_blank = false);

  CachedVariable &owner() const { return *owner_; }
  /// Element number of the page's first element.
  std::int64_t first() const { return first_; }
  std::int64_t elements() const { return elements_; }
  Interval range() const { return {first_, first_ + elements_}; }
  bool has_place_for(std::int64_t element) const { return first_ <= element && element < first_ + elements_; }
  std::int64_t dirty_elements() const { return dirty_; }
  bool full() const { return dirty_ == elements_; }
  std::byte *data() const { return memory_.data; }
  /// Where the data of an element lie.
  inline std::byte *at(std::int64_t element) const;
  std::uint64_t charged_bytes() const { return memory_.size_bytes; }
  void mark_dirty(const Rows &rows);  ///< element numbers of the variable
  /// Puts the elements of `rows`, whose data lie one after the other, in their place; mark_dirty() follows.
  void put(const Rows &rows, const std::byte *data);
  /// Elements have come to their place otherwise; mark_dirty() follows. `sum`: sum_of() their data.
  void note_put(Interval elements, std::uint32_t sum);
  /// Whether its elements may be put there without put(): none is dirty, or about to be put there by somebody else.
  bool is_free(Interval elements) const;
  void begin_filling(Interval elements) { filling_.push_back(elements); }
  void end_filling(Interval elements);
  /// Whether what is dirty is what was put there, as far as that is known.
  bool is_sound() const;
  /// What is dirty is right as it is now.
  void note_sound() { sum_ = sum_of_dirty(); }
  /// All of `run`, which lies in the page, is dirty; of a clean page: is there.
  bool covers(Interval run) const;
  /// The first run of dirty elements at or behind `from`, an element number of the variable; empty if there is none.
  Interval dirty_run(std::int64_t from) const;
  Interval dirty_bounds() const { return bounds_; }
  /// Somebody is about to write to it, or reads from it: as long as it has pins, its memory stays, though it may be
  /// taken out.
  void pin() { ++pins_; }
  bool is_pinned() const { return pins_ > 0; }
  /// What is stored of a page that leaves the memory, and brings it back: its data between its bounds, and, if they are
  /// not one run, what tells them apart.
  std::span<std::byte> image() const;
  /// Its data are not in memory.
  bool is_away() const { return is_away_; }
  std::int64_t index() const { return index_; }
  /// It has not been taken out.
  bool is_attached() const { return is_attached_; }
  bool is_clean() const { return state_ >= PageState::kClean; }
  /// Of pages of one place, what was taken out later is newer.
  std::uint64_t number() const { return number_; }

 private:
  friend class PageCache;
  void set_bits(Interval bits);
  bool has_dirty(Interval elements) const;
  std::uint32_t sum_of_dirty() const;
  void take_out(Interval elements);
  std::uint64_t bytes_behind(std::int64_t element) const;
  void empty();
  void take_place(PageMemory::Block memory);
  bool is_one_run() const { return bounds_.size() == dirty_; }
  bool is_being_filled(const Rows &rows) const;
  CachedVariable *owner_;
  std::int64_t index_, first_, elements_, dirty_ = 0;
  Interval bounds_;           ///< of what is dirty
  PageMemory::Block memory_;  ///< data, then the bits
  std::uint64_t *bits_ = nullptr;
  int pins_ = 0;
  bool is_attached_ = true, is_given_back_ = false, is_away_ = false;
  bool is_in_reserve_ = false;  ///< its memory is
  PageState state_ = PageState::kPartial, held_state_ = PageState::kPartial;
  std::uint64_t number_ = 0;
  std::uint32_t sum_ = 0;          ///< of what is dirty, as if there were zeros besides
  bool is_summed_ = false;         ///< sum_ is known
  std::vector<Interval> filling_;  ///< elements that somebody is putting there
  std::list<Page *>::iterator in_order_;
  std::vector<std::shared_ptr<DrainWatch>> watches_;
};

/// The CRC32C of data as polynomials have it, where those of parts add up: nothing is before it, nor inverted.
std::uint32_t sum_of(std::span<const std::byte> data);

/// A page whose data are on their way from the file.
struct Loading {
  CachedVariable *variable = nullptr;  ///< null: somebody has written there meanwhile; it is for nobody who comes later
  std::int64_t index = 0;
  Page *page = nullptr;  ///< pinned
};

/// A variable's pages.
struct CachedVariable {
  CachedVariable() = default;
  ~CachedVariable();
  CachedVariable(const CachedVariable &) = delete;

  Variable variable;
  std::int64_t page_elements = 1;
  std::map<std::int64_t, std::unique_ptr<Page>> pages;  ///< by index
  Page *latest = nullptr;                               ///< of these, the one that was written last, if there is one
  std::vector<Page *> draining;                         ///< taken out, oldest first
  std::uint64_t dirty_bytes = 0;                        ///< of pages and of draining
  OpenFile *file = nullptr;                             ///< whose variable it is; the cache does not look at it
  std::map<std::int64_t, std::unique_ptr<Page>> clean;  ///< by index, where `pages` has none
  std::map<std::int64_t, std::shared_ptr<Loading>> loading;  ///< by index
  bool keeps_clean = false;                                  ///< what has been drained stays
  PageCache *cache = nullptr;

  /// Holds all dirty elements.
  Interval dirty_bounds() const;
};

std::byte *Page::at(std::int64_t element) const { return data() + (element - first_) * owner_->variable.element_bytes; }

class PageCache {
 public:
  /// `sums`: pages have checksums.
  PageCache(std::uint64_t budget_bytes, nessie::Budget::Account &account, bool sums = true);
  ~PageCache();
  bool sums() const { return sums_; }

  /// Prepares a variable to have pages.
  std::unique_ptr<CachedVariable> adopt(Variable variable);

  /// The page of an element, made if need be; null if the budget is short: drain some and come again. While no page
  /// exists at all, there is always memory for one. Unless it `grows`, memory that was never used is none.
  Page *writable(CachedVariable &variable, std::int64_t element, bool grows = true);
  /// Marks elements of a page as written.
  void wrote(Page &page, const Rows &rows);
  /// Takes back a pin. A page that nobody has written to goes, and one that has been given back meanwhile.
  void unpin(Page &page);
  /// A page that has pins, and has been given back, takes its place again, and nothing of it is dirty. False: it is
  /// still on its way to the file, or another one has its place.
  bool put_back(Page &page);

  /// Asks for the pages that meet `within` to be drained with `state`, and has `watch`, if there is one, told of each,
  /// and of those that are draining already.
  void request_drain(CachedVariable &variable, Interval within, PageState state,
                     const std::shared_ptr<DrainWatch> &watch);
  /// The oldest page of the first state, up to and including `last`, that has one. Null: none.
  Page *next(PageState last) const;
  /// The page stays, though next() would be it, until its file goes on.
  void hold_back(Page &page);
  void go_on(const OpenFile &file);
  void go_on(CachedVariable &variable, std::int64_t index);
  /// Those of a file, in their order.
  std::vector<Page *> held_back(const OpenFile &file);
  /// Takes out a page, to be drained.
  std::unique_ptr<Page> take(Page &page);
  /// The page is in the file, or given up, with this error: its memory is free. Tells the watches.
  void give_back(std::unique_ptr<Page> page, int nc_error = 0);

  // --- pages that leave the memory while they wait: away_pages.cpp ----------------------------------------------------
  /// Keeps memory for so many pages back, which come to memory again only to be drained. False: there is not enough.
  bool reserve(std::size_t pages);
  bool has_reserve() const { return !reserve_.empty(); }
  /// The page that is best taken out to leave the memory, and that nobody uses just now; null: none.
  Page *next_to_leave_memory() const;
  /// Of a page that was taken out, and has no pins.
  void leave_memory(Page &page);
  /// It has memory of the reserve, and is still away, until its image is there.
  void prepare_return(Page &page);
  void note_return(Page &page) { page.is_away_ = false; }
  /// Its image is lost: each element between its bounds counts as one that was written.
  void note_loss(Page &page);

  // --- clean pages: clean_pages.cpp ---------------------------------------------------------------------------------
  /// Memory for a page that is to be read from the file, which keep() or give_up() takes; null: there is none but what
  /// is dirty, or, if it may not take the place of others, none at all.
  std::unique_ptr<Page> blank(CachedVariable &variable, std::int64_t index, bool takes_place);
  /// No element of a blank page has been read from the file. Not before the data are to be put there: memory that was
  /// never used before is best looked for by whoever reads them.
  static void clear_present(Page &page) { page.empty(); }
  /// These elements have been read from the file.
  static void note_present(Page &page, Interval elements);
  /// There is no other page at its place.
  void keep(std::unique_ptr<Page> page) { attach_clean(std::move(page), PageState::kLoaded); }
  void give_up(std::unique_ptr<Page> page) { release(std::move(page)); }
  /// What is known of a variable's data in the file holds no more; also what is on its way from there.
  void forget(CachedVariable &variable);
  void forget(CachedVariable &variable, std::int64_t index);
  /// The clean pages of one variable are another one's, which has none, and the same shape.
  static void hand_over(CachedVariable &from, CachedVariable &to);
  /// The page in which a reader finds an element. Null: none, or, `is_split`, two.
  struct Found {
    Page *page = nullptr;
    bool is_split = false;
  };
  Found find(CachedVariable &variable, std::int64_t element);
  std::uint64_t clean_bytes() const { return clean_bytes_; }
  /// Somebody has read what had been drained.
  bool has_readers() const { return has_readers_; }
  /// How much memory that was never used before clean pages could do with; told once.
  std::uint64_t take_wanted_bytes() { return std::exchange(wanted_bytes_, 0); }

  PageMemory &memory() { return memory_; }
  std::uint64_t budget_bytes() const { return memory_.budget_bytes(); }
  std::uint64_t used_bytes() const { return memory_.used_bytes(); }
  std::uint64_t high_bytes() const { return memory_.high_bytes(); }

 private:
  void move(Page &page, PageState state);
  void go_on(Page &page);
  PageMemory::Block memory_to_read(std::size_t size_bytes);
  PageMemory::Block memory_to_write(std::size_t size_bytes, bool grows);
  PageMemory::Block any_memory(std::size_t size_bytes, bool takes_place);
  bool give_up_oldest();
  bool give_up_oldest(PageState state);
  Page *take_over(CachedVariable &variable, std::int64_t index);
  std::size_t most_page_bytes() const;
  Page *attach(std::unique_ptr<Page> page);
  void attach_clean(std::unique_ptr<Page> page, PageState state);
  std::unique_ptr<Page> extract(Page &page);
  void release(std::unique_ptr<Page> page);
  std::list<Page *> &order(PageState state) { return order_[static_cast<std::size_t>(state)]; }

  PageMemory memory_;
  const bool sums_;
  std::size_t page_bytes_;
  std::list<Page *> order_[kPageStates];  ///< oldest first
  std::uint64_t clean_bytes_ = 0, loaded_bytes_ = 0, wanted_bytes_ = 0;
  bool has_readers_ = false;
  std::uint64_t taken_ = 0;  ///< pages, so far
  std::vector<PageMemory::Block> reserve_;
};

/// Puts the data of one piece into pages, as far as the budget lets at a time.
class Scatter {
 public:
  /// `data` is borrowed.
  Scatter(CachedVariable &variable, const Piece &piece, const std::byte *data)
      : variable_(variable), cursor_(variable.variable, piece), data_(data) {}
  /// True when all is in place; false when a page could not be had: call again when there is memory. `grows`: as in
  /// writable().
  bool advance(PageCache &cache, bool grows = true);

 private:
  CachedVariable &variable_;
  RunCursor cursor_;
  const std::byte *data_;
};

/// Copies the data of one piece from pages.
class Gather {
 public:
  enum class State {
    kDone,
    kMissing,  ///< what comes next is in no page
    kDirty,    ///< some of it is, on its way to the file, and some is not
  };
  /// `data` is borrowed.
  Gather(CachedVariable &variable, const Piece &piece, std::byte *data)
      : variable_(variable), cursor_(variable.variable, piece), data_(data) {}
  State advance(PageCache &cache);
  /// The element that comes next.
  std::int64_t position() const { return cursor_.run().begin; }
  /// Copies what comes next, as far as it is in a page that has it; false: it has not.
  bool copy_from(const Page &page);

 private:
  CachedVariable &variable_;
  RunCursor cursor_;
  std::byte *data_;
};

/// Packs `box` of a page's data to `out`; returns the end of what was written.
std::byte *pack(const Page &page, const Variable &variable, const Box &box, std::byte *out);

}  // namespace staging
