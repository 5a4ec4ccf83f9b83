// SPDX-License-Identifier: BSD-3-Clause
// Moves pages from the cache to the files: chooses the next page, hands it to the I/O thread, keeps the accounts.
// Progress thread, but for what runs in the I/O queue.
#pragma once

#include <service/worker.hpp>
#include <services/staging/server/open_file.hpp>
#include <services/staging/server/spill.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace staging {

using nessie::service::Worker;

/// CLOCK_MONOTONIC, in seconds.
double seconds_now();

class Drainer;
struct DrainTask;

/// Elements of a page that are being filled from elsewhere, which holds up nobody who drains it: its memory stays until
/// this goes.
class Filling {
 public:
  Filling(Drainer &drainer, Page &page, Interval elements);
  ~Filling();
  Filling(const Filling &) = delete;
  std::span<std::byte> data() const;
  /// They are there now. `sum`: sum_of() their data. May suspend the fiber, as Drainer::put().
  void wrote(std::uint32_t sum);

 private:
  Drainer &drainer_;
  Page &page_;
  const Interval elements_;
};

struct DrainOptions {
  /// What cannot be written, for a reason that may pass, is tried again for so long.
  std::chrono::milliseconds patience{60'000};
  std::string spill;        ///< a folder for what memory has no room for; empty: writers wait
  bool fails_fast = false;  ///< who waits for it is told at once that it is being tried again
  bool reads_back = false;  ///< what was written is read when it is on the disk, and compared
  bool checks = true;       ///< pages have checksums, which are looked at before they are written
};

class Drainer {
 public:
  /// Of `budget` at most `most_bytes`.
  Drainer(nssi::Runtime &runtime, Worker &io, nessie::Budget &budget, std::uint64_t most_bytes,
          ReportResult &statistics, DrainOptions options = {})
      : runtime_(runtime),
        io_(io),
        statistics_(statistics),
        options_(std::move(options)),
        account_(budget, "staging.pages", {.on_room = [this] { look_again(); }, .on_shortage = [this] { shrink(); }}),
        cache_(most_bytes, account_, options_.checks),
        memory_freed_(runtime) {
    if (!options_.spill.empty()) begin_to_spill(budget);
  }

  PageCache &cache() { return cache_; }
  /// Has memory for the first pages made resident while the I/O thread has nothing else to do: the kernel takes longer
  /// to find it than the data to be copied there.
  void touch_ahead(std::uint64_t bytes);
  /// Has memory for pages that are kept for readers made resident, likewise.
  void touch_for_readers();
  /// Ends what touch_ahead() and touch_for_readers() began. Not on the I/O thread while it runs; before the runtime is
  /// destroyed.
  void end_touching();
  /// Whether there is no core for the drain but those that the program uses. Then what nobody waits for leaves when the
  /// program has asked for nothing for a moment, or when there is much of it.
  void give_way(bool gives_way) { gives_way_ = gives_way; }
  /// Whole pages leave as soon as they are whole: somebody is going to wait for them.
  void drain_at_once() { drains_at_once_ = true; }
  /// The program asks for something.
  void note_activity() { active_s_ = seconds_now(); }
  /// Puts a piece into pages; suspends the fiber while the budget is short. `data` is borrowed.
  void put(CachedVariable &variable, const Piece &piece, const std::byte *data);
  /// The page of an element, for Filling; suspends the fiber while the budget is short. Null: clients hold too many.
  Page *page_to_fill(CachedVariable &variable, std::int64_t element);
  /// Whether a page may wait for a client to move its data: others need memory, too, however long that takes.
  bool may_hold(const CachedVariable &variable) const;
  void hold(Page &page);
  void let_go(Page &page);
  /// Suspends the fiber until what is dirty now of these elements, or of the file, is in the file or has failed. A file
  /// that was hastened is urgent in any case. The native code of the first that failed.
  int flush(CachedVariable &variable, Interval within);
  int flush(OpenFile &file, PageState priority);
  /// The same, for a program that waits. If the user wants that, until something failed that is being tried again.
  int flush_for_program(OpenFile &file);
  bool fails_fast() const { return options_.fails_fast; }
  bool reads_back() const { return options_.reads_back; }
  /// Makes a closed file's drain urgent that somebody else waits for already, once and for all.
  void hasten(OpenFile &file);
  /// Whoever waits for memory is to look again: some page is not in use any more.
  void note_memory() { memory_freed_.notify_all(); }
  bool is_short_of_memory() const { return starved_ > 0; }
  /// Nothing is spilled any more, and what was has been drained. Suspends the fiber.
  void end_spilling();
  std::uint64_t spill_bytes() const { return spill_ ? spill_->held_bytes() : 0; }
  std::uint64_t pending_bytes() const { return pending_bytes_; }
  /// Carries out `call`, which may suspend the fiber, and does so again while it fails for a reason that may pass: with
  /// growing pauses, for the user's patience. `tells_at_once`: not if the user wants the program to be told at once.
  /// What came of it in the end.
  PageOutcome insist(OpenFile &file, bool tells_at_once, const std::function<PageOutcome()> &call);
  /// Files that cannot be written just now.
  std::vector<StuckFile> stuck() const;
  /// Nothing: it goes well with the file.
  std::optional<Trouble> trouble_of(const OpenFile &file) const;
  std::uint64_t memory_high_bytes() const { return cache_.high_bytes(); }

 private:
  friend class Filling;
  /// How quickly something goes, as of late.
  struct Pace {
    void add(std::uint64_t more_bytes, double more_seconds);
    double bytes = 0, seconds = 0;
  };
  Page &page_of(Page &filled, std::int64_t element);
  void look_again();
  void shrink();
  bool grows() const;
  bool stands_still() const;
  void await_memory();
  void note_dirty(const CachedVariable &variable, std::uint64_t before);
  void touch_next();
  void pump();
  std::shared_ptr<DrainTask> next_task();
  Page *next_page(PageState last);
  PageState last_to_leave();
  bool is_held_back();
  bool joins(const Page &page, const DrainTask &task) const;
  void start(const std::shared_ptr<DrainTask> &task);
  void finish(DrainTask &task);
  void finish(OpenFile &file, std::unique_ptr<Page> page, const PageOutcome &outcome);
  // --- what may pass: retry.cpp
  bool is_patient(const OpenFile &file) const;
  void wait_with(OpenFile &file, std::unique_ptr<Page> page, const PageOutcome &outcome,
                 const std::optional<LogRange> &spilled);
  void note_failure(OpenFile &file, const PageOutcome &outcome);
  void note_written(OpenFile &file);
  void look_at_course(const std::shared_ptr<OpenFile> &file, bool has_failed);
  void try_again_later(const std::shared_ptr<OpenFile> &file);
  void try_again(const std::shared_ptr<OpenFile> &file);
  void give_up(OpenFile &file);
  bool start_what_waited();
  void warn(const OpenFile &file, const PageOutcome &outcome) const;
  bool has_patience_since(double since_s) const;
  StuckFile stuck(const OpenFile &file, const Trouble &trouble) const;
  // --- what is not as it was put there: damage.cpp
  void note_damage(OpenFile &file, const Page &page, bool is_lost);
  bool remake(OpenFile &file, Page &page);
  bool make_sound(OpenFile &file, Page &page);
  // --- what memory has no room for: spilling.cpp
  using Spilled = std::map<PagePlace, SpilledPage>::iterator;
  void begin_to_spill(nessie::Budget &budget);
  void look_for_memory();
  void spill_for_writers();
  bool is_worth_spilling() const;
  void spill(Page &page);
  void keep_spilled(OpenFile &file, std::unique_ptr<Page> page, const LogRange &at);
  void want_spilled(const CachedVariable &variable, Interval within);
  bool start_wanted();
  bool start_next_spilled();
  bool may_start(const Course &course, Spilled spilled) const;
  void start_spilled(const std::shared_ptr<OpenFile> &file, Spilled spilled);
  void submit_spilled(const std::shared_ptr<OpenFile> &file, Spilled spilled);
  void bring_back(const std::shared_ptr<OpenFile> &file, Spilled spilled);
  void request(OpenFile &file, PageState priority, const std::shared_ptr<DrainWatch> &watch);
  int flush(const std::function<void(const std::shared_ptr<DrainWatch> &)> &request);

  nssi::Runtime &runtime_;
  Worker &io_;
  ReportResult &statistics_;
  const DrainOptions options_;
  nessie::Budget::Account account_;
  PageCache cache_;
  WaitQueue memory_freed_;
  std::size_t in_flight_ = 0;              ///< tasks of the I/O thread
  std::size_t starved_ = 0, patient_ = 0;  ///< fibers that wait for memory; because there is none, or it comes sooner
  Pace drained_, touched_;                 ///< to the file; made resident, in time of the processor
  std::uint64_t pending_bytes_ = 0;        ///< dirty, of all files
  std::uint64_t bytes_to_touch_ = 0;
  bool gives_way_ = false, awaits_quiet_ = false, drains_at_once_ = false;
  double active_s_ = 0;
  std::uint64_t held_bytes_ = 0;  ///< of pages, once for each client that data move from or to
  std::vector<std::shared_ptr<OpenFile>> stuck_;
  std::list<std::pair<const OpenFile &, Trouble>> insisting_;  ///< on calls that fail
  std::unique_ptr<Spill> spill_;
  Pace spilled_;
  std::size_t spilling_ = 0;  ///< fibers
  std::vector<std::shared_ptr<OpenFile>> spilled_files_;
  std::deque<std::pair<std::weak_ptr<OpenFile>, PagePlace>> wanted_;  ///< of what was spilled, somebody waits for it
  double moved_s_ = 0;                                                ///< when the I/O thread had something to do last
  bool spilled_is_next_ = false;
  bool waits_to_touch_ = false, has_ended_touching_ = false;
};

}  // namespace staging
