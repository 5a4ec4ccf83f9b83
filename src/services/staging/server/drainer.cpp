// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/drainer.hpp>

#include <services/staging/server/drain_task.hpp>
#include <services/staging/server/page_writer.hpp>

#include <base/log.hpp>

#include <time.h>
#include <chrono>
#include <cstring>

namespace staging {

namespace {

/// With so much in memory, what is complete leaves though its file is open: memory that is used again is there already.
constexpr std::uint64_t kPlenty = 64 << 20;
/// What gives way to the program does so for a moment after each of its requests, and no longer with so much in memory.
constexpr std::uint64_t kMuch = 128 << 20;
constexpr std::chrono::milliseconds kGivingWay{20};
constexpr std::size_t kTasksInFlight = 4;  // enough that the I/O thread never waits for the next
constexpr std::size_t kTouchedAtOnce = 2 << 20;
constexpr std::chrono::milliseconds kCalm{100}, kStandstill{100};
/// The kernel must be so much quicker than the drain for memory to grow: who waits for a drain takes nothing from it.
/// And where the program uses all cores, data go to the file soonest that are still in the processor's caches.
constexpr double kQuicker = 2, kMuchQuicker = 8;
constexpr double kRemembered = 0.9;  // of what was measured before, each time

/// Pages that are written natively together: so many at most, with so many bytes, and each of them with so many.
constexpr std::size_t kMostTogether = 128;
/// Where there is a spill, what is on its way leaves most of the budget to it.
constexpr std::uint64_t kShareTogether = 32;
constexpr std::uint64_t kTogetherBytes = 1 << 20, kSmallPageBytes = 256 << 10;

/// Of this thread.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Drainer::Pace::add(std::uint64_t more_bytes, double more_seconds) {
  bytes = kRemembered * bytes + static_cast<double>(more_bytes);
  seconds = kRemembered * seconds + more_seconds;
}

void Drainer::touch_ahead(std::uint64_t bytes) {
  bytes_to_touch_ = bytes;
  touch_next();
}

// The kernel takes its time to find memory, and the program may need the processors. Where nobody reads what was
// written, nobody needs that memory.
void Drainer::touch_for_readers() {
  if (!cache_.has_readers() || has_ended_touching_ || std::exchange(waits_to_touch_, true)) return;
  runtime_.spawn([this] {
    const auto done = [this] { return statistics_.bytes_pulled + statistics_.bytes_read + statistics_.files; };
    const auto before = done();
    runtime_.sleep_until(nessie::Deadline::in(kCalm));
    if (has_ended_touching_) return;
    waits_to_touch_ = false;
    if (pending_bytes_ > 0 || done() != before) return;
    const auto bytes = cache_.take_wanted_bytes();
    if (bytes > 0 && std::exchange(bytes_to_touch_, bytes_to_touch_ + bytes) == 0) touch_next();
  });
}

void Drainer::touch_next() {
  const auto memory = cache_.memory().next_to_touch(std::min<std::uint64_t>(bytes_to_touch_, kTouchedAtOnce));
  if (memory.empty()) return;
  bytes_to_touch_ -= memory.size();
  io_.submit(Worker::Lane::kAhead, [this, memory] {
    const auto before = processor_seconds();
    PageMemory::touch(memory);
    runtime_.post([this, bytes = memory.size(), seconds = processor_seconds() - before] {
      touched_.add(bytes, seconds);
      touch_next();
    });
  });
}

void Drainer::end_touching() {
  bytes_to_touch_ = 0;
  has_ended_touching_ = true;
  io_.drop_ahead();
}

void Drainer::note_dirty(const CachedVariable &variable, std::uint64_t before) {
  pending_bytes_ += variable.dirty_bytes - before;
  if (drains_at_once_ || pending_bytes_ > kPlenty) pump();
}

// Memory that was never used costs the kernel time: on some machines more than it takes to write as much to a file,
// which frees memory that was.
bool Drainer::grows() const {
  const bool frees_memory = in_flight_ > 0 || cache_.next(PageState::kFull) != nullptr;
  if (stands_still()) return true;
  const auto quicker = gives_way_ ? kMuchQuicker : kQuicker;
  return !frees_memory || drained_.seconds * touched_.bytes > quicker * drained_.bytes * touched_.seconds;
}

/// Whether the file system has taken nothing for a while: there is no waiting for it.
bool Drainer::stands_still() const {
  return in_flight_ > 0 && seconds_now() - moved_s_ > std::chrono::duration<double>(kStandstill).count();
}

/// Another pool of the process has given memory back. Any thread.
void Drainer::look_again() {
  runtime_.post([this] { memory_freed_.notify_all(); });
}

/// Another pool is short of memory. Any thread.
void Drainer::shrink() {
  runtime_.post([this] { cache_.memory().give_back_unused(); });
}

void Drainer::await_memory() {
  const bool is_starved = grows();
  auto &waiting = is_starved ? starved_ : patient_;
  ++waiting;
  pump();
  look_for_memory();
  (void)memory_freed_.wait(is_starved ? nessie::Deadline::never() : nessie::Deadline::in(kStandstill));
  --waiting;
}

void Drainer::put(CachedVariable &variable, const Piece &piece, const std::byte *data) {
  Scatter scatter(variable, piece, data);
  for (;;) {
    const auto before = variable.dirty_bytes;
    const bool done = scatter.advance(cache_, grows());
    note_dirty(variable, before);
    if (done) return;
    await_memory();
  }
}

Page *Drainer::page_to_fill(CachedVariable &variable, std::int64_t element) {
  while (may_hold(variable)) {
    if (auto *page = cache_.writable(variable, element, grows())) return page;
    await_memory();
  }
  return nullptr;
}

bool Drainer::may_hold(const CachedVariable &variable) const {
  const auto page_bytes = static_cast<std::uint64_t>(variable.page_elements * variable.variable.element_bytes);
  return held_bytes_ == 0 || held_bytes_ + page_bytes <= cache_.budget_bytes() / 2;
}

void Drainer::hold(Page &page) {
  page.pin();
  held_bytes_ += page.charged_bytes();
}

void Drainer::let_go(Page &page) {
  held_bytes_ -= page.charged_bytes();
  cache_.unpin(page);
  note_memory();
}

/// The page in which an element of `filled` belongs by now. It may have left while its data came; its memory is not to
/// be waited for by who holds it.
Page &Drainer::page_of(Page &filled, std::int64_t element) {
  for (;;) {
    if (filled.is_attached() || cache_.put_back(filled)) return filled;
    if (auto *page = cache_.writable(filled.owner(), element, grows())) return *page;
    await_memory();
  }
}

Filling::Filling(Drainer &drainer, Page &page, Interval elements)
    : drainer_(drainer), page_(page), elements_(elements) {
  page_.begin_filling(elements_);
  drainer_.hold(page_);
}

Filling::~Filling() {
  page_.end_filling(elements_);
  drainer_.let_go(page_);
}

std::span<std::byte> Filling::data() const {
  return {page_.at(elements_.begin), static_cast<std::size_t>(elements_.size() * page_.owner().variable.element_bytes)};
}

void Filling::wrote(std::uint32_t sum) {
  auto &variable = page_.owner();
  auto *page = &drainer_.page_of(page_, elements_.begin);
  if (page != &page_)
    page->put({elements_}, data().data());
  else
    page->note_put(elements_, sum);
  const auto before = variable.dirty_bytes;
  drainer_.cache_.wrote(*page, {elements_});
  drainer_.note_dirty(variable, before);
}

int Drainer::flush(const std::function<void(const std::shared_ptr<DrainWatch> &)> &request) {
  auto watch = std::make_shared<DrainWatch>();
  nssi::Event done(runtime_);
  watch->done = [&] { done.set(); };
  request(watch);
  pump();
  if (watch->left > 0) (void)done.wait();
  return watch->nc_error;
}

int Drainer::flush(CachedVariable &variable, Interval within) {
  want_spilled(variable, within);
  return flush([&](const auto &watch) { cache_.request_drain(variable, within, PageState::kUrgent, watch); });
}

void Drainer::request(OpenFile &file, PageState priority, const std::shared_ptr<DrainWatch> &watch) {
  for (auto &variable : file.variables()) cache_.request_drain(*variable.cached, {0, INT64_MAX}, priority, watch);
}

int Drainer::flush(OpenFile &file, PageState priority) {
  return flush([&](const auto &watch) { request(file, file.hastened ? PageState::kUrgent : priority, watch); });
}

void Drainer::hasten(OpenFile &file) {
  if (std::exchange(file.hastened, true)) return;
  request(file, PageState::kUrgent, nullptr);
  pump();
}

// Without somebody who waits for memory, pages of open files stay if they are not complete: what is written next may
// complete them.
void Drainer::pump() {
  while (in_flight_ < kTasksInFlight) {
    if (start_what_waited() || start_wanted()) continue;
    spilled_is_next_ = !spilled_is_next_;
    if (spilled_is_next_ && start_next_spilled()) continue;
    if (const auto task = next_task())
      start(task);
    else if (spilled_is_next_ || !start_next_spilled())
      return;
  }
}

/// Null: there is nothing that may leave.
std::shared_ptr<DrainTask> Drainer::next_task() {
  const auto last = last_to_leave();
  auto *page = next_page(last);
  if (page == nullptr) return nullptr;
  auto task = std::make_shared<DrainTask>();
  for (; page != nullptr && joins(*page, *task); page = next_page(last)) task->add(cache_.take(*page));
  return task;
}

/// Of a file that can be written.
Page *Drainer::next_page(PageState last) {
  auto *page = cache_.next(last);
  const auto is_held_back = [](const Page &one) {
    auto &course = one.owner().file->course;
    return course.holds_back() || course.has_before(one);
  };
  for (; page != nullptr && is_held_back(*page); page = cache_.next(last)) cache_.hold_back(*page);
  return page;
}

PageState Drainer::last_to_leave() {
  if (starved_ > 0) return PageState::kPartial;
  if (drains_at_once_ || patient_ > 0) return PageState::kFull;
  const auto last = pending_bytes_ > kPlenty ? PageState::kFull : PageState::kClosing;
  return cache_.next(last) != nullptr && is_held_back() ? PageState::kUrgent : last;
}

/// If so, looks again when the moment is over.
bool Drainer::is_held_back() {
  const auto is_active = [this] {
    return seconds_now() - active_s_ < std::chrono::duration<double>(kGivingWay).count();
  };
  if (!gives_way_ || pending_bytes_ > kMuch || !is_active()) return false;
  if (std::exchange(awaits_quiet_, true)) return true;
  runtime_.spawn([this, is_active] {
    while (is_active()) runtime_.sleep_until(nessie::Deadline::in(kGivingWay));
    awaits_quiet_ = false;
    pump();
  });
  return true;
}

/// Whether the next page goes to the file together with others that came before it.
bool Drainer::joins(const Page &page, const DrainTask &task) const {
  if (task.pages.empty()) return true;
  const auto most_bytes = spill_ ? std::min(kTogetherBytes, cache_.budget_bytes() / kShareTogether) : kTogetherBytes;
  const auto is_small = [](const Page &one) {
    return dirty_bytes(one) <= kSmallPageBytes && one.dirty_bounds().size() == one.dirty_elements();
  };
  return page.owner().file == task.pages.front()->owner().file && task.bytes + dirty_bytes(page) <= most_bytes &&
         task.pages.size() < kMostTogether && is_small(page) && is_small(*task.pages.front());
}

void Drainer::start(const std::shared_ptr<DrainTask> &task) {
  if (in_flight_++ == 0) moved_s_ = seconds_now();
  task->file = task->pages.front()->owner().file->shared_from_this();
  task->is_patient = is_patient(*task->file);
  auto &course = task->file->course;
  if (course.in_flight++ == 0) course.is_stopped = false;
  // It goes on with what is posted: nothing of it is to end on the I/O thread.
  io_.submit(Worker::Lane::kDrain, [this, task = std::shared_ptr(task), native = task->file->native.get(),
                                    is_only_writer = task->file->has_one_writer()]() mutable {
    task->write(*native, is_only_writer);
    runtime_.post([this, task = std::move(task)] { finish(*task); });
  });
}

void Drainer::finish(DrainTask &task) {
  --in_flight_;
  statistics_.busy_drain_s += task.ended_s - task.started_s;
  statistics_.last_drain_s = moved_s_ = task.ended_s;
  --task.file->course.in_flight;
  bool has_failed = false;
  for (std::size_t i = 0; i < task.pages.size(); ++i) {
    const auto &outcome = task.outcomes[i];
    const bool may_come = !outcome.was_tried || (task.is_patient && may_pass(outcome));
    has_failed = has_failed || (may_come && outcome.was_tried);
    statistics_.damaged_pages += outcome.is_damaged ? 1 : 0;
    if (outcome.is_damaged) note_damage(*task.file, *task.pages[i], !may_come);
    const bool stays_spilled = may_come && !outcome.is_damaged;
    if (may_come)
      wait_with(*task.file, std::move(task.pages[i]), outcome, stays_spilled ? task.spilled : std::nullopt);
    else
      finish(*task.file, std::move(task.pages[i]), outcome);
    if (!stays_spilled && task.spilled) spill_->release(*task.spilled);
  }
  if (!task.file->course.is_stopped) drained_.add(task.bytes, task.ended_s - task.started_s);
  look_at_course(task.file, has_failed);
  memory_freed_.notify_all();
  pump();
  if (pending_bytes_ == 0) touch_for_readers();
}

void Drainer::finish(OpenFile &file, std::unique_ptr<Page> page, const PageOutcome &outcome) {
  const auto bytes = dirty_bytes(*page);
  auto &variable = *file.find(page->owner().variable.varid);
  pending_bytes_ -= bytes;
  if (outcome.nc_error == 0) {
    statistics_.bytes_drained += bytes;
    file.reached_file(variable, *page);
    note_written(file);
  } else if (file.is_direct) {
    ++file.failed_pages;
    file.failed_page_error = outcome.nc_error;
  } else {
    if (!file.lost_anything())
      nessie::log::error("cannot write {}: {}", file.path, native_message(outcome.nc_error, outcome.system_error));
    file.failed(variable, *page, outcome, options_.fails_fast && may_pass(outcome) && options_.patience.count() > 0);
  }
  cache_.give_back(std::move(page), outcome.nc_error);
  file.note_ledger(variable);
}

}  // namespace staging
