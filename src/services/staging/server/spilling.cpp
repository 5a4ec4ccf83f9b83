// SPDX-License-Identifier: BSD-3-Clause
// Pages that go to node-local storage while writers wait for memory, and come back to be drained.
//
// Design notes. A page that is spilled has been taken out of the cache, as one that is being drained: it stands in the
// order of its place, what is written there next makes a new page, and who reads it has it drained first. What is newer
// at its place is held back until it is on its way to the I/O thread. There is memory that only pages take which come
// back, so that they never wait for those that wait for them. What was spilled goes to the file in the file's order.
#include <services/staging/server/drain_task.hpp>
#include <services/staging/server/drainer.hpp>

#include <base/log.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <cerrno>

namespace staging {

namespace {

constexpr std::size_t kReserve = 4;            // pages that come back at a time
constexpr std::size_t kSpilledAtOnce = 4;      // fibers
constexpr double kSlower = 1.5;                // so much slower the drain must be: what is spilled has to be read again
constexpr double kLikelyBytesPerSecond = 5e8;  // to the spill, before it was measured
constexpr std::chrono::milliseconds kLookForMemory{20};

}  // namespace

void Drainer::begin_to_spill(nessie::Budget &budget) {
  if (cache_.reserve(kReserve))
    spill_ = std::make_unique<Spill>(runtime_, budget, options_.spill);
  else
    nessie::log::warning("nothing is spilled: there is too little memory (staging.memory)");
}

void Drainer::end_spilling() {
  if (!spill_) return;
  spill_->flush();
  while (spilling_ > 0)
    if (memory_freed_.wait(nessie::Deadline::in(kLookForMemory)).code() == nessie::Code::kCancelled) return;
  spill_.reset();
}

/// Somebody waits for memory.
void Drainer::look_for_memory() {
  if (!spill_ || starved_ == 0) return;
  for (; spill_->takes() && spilling_ < kSpilledAtOnce; ++spilling_)
    runtime_.spawn([this] {
      spill_for_writers();
      --spilling_;
    });
}

void Drainer::spill_for_writers() {
  while (starved_ > 0 && spill_->takes()) {
    auto *page = is_worth_spilling() ? cache_.next_to_leave_memory() : nullptr;
    if (page != nullptr)
      spill(*page);
    else if (memory_freed_.wait(nessie::Deadline::in(kLookForMemory)).code() == nessie::Code::kCancelled)
      return;
  }
}

/// Whether it gives memory back sooner than the drain does.
bool Drainer::is_worth_spilling() const {
  if (in_flight_ == 0 || stands_still()) return true;
  const auto spill_s = spilled_.bytes > 0 ? spilled_.seconds / spilled_.bytes : 1 / kLikelyBytesPerSecond;
  return drained_.seconds > kSlower * spill_s * drained_.bytes;
}

void Drainer::spill(Page &page) {
  const auto file = page.owner().file->shared_from_this();
  const auto begun_s = seconds_now();
  auto taken = cache_.take(page);
  const auto place = place_of(page);
  auto &entry = file->course.spilled[place];
  entry.page = std::move(taken);
  entry.is_busy = true;
  const auto at = spill_->put(page);
  if (at.ok()) {
    statistics_.bytes_spilled += dirty_bytes(page);
    spilled_.add(page.charged_bytes(), (seconds_now() - begun_s) / static_cast<double>(spilling_));
  }
  auto kept = std::move(file->course.spilled.extract(place).mapped().page);
  keep_spilled(*file, std::move(kept), at.ok() ? *at : LogRange{});
  memory_freed_.notify_all();
  pump();
}

/// A page that was taken out, and is there. It leaves the memory, unless somebody reads it just now.
void Drainer::keep_spilled(OpenFile &file, std::unique_ptr<Page> page, const LogRange &at) {
  if (const auto shared = file.shared_from_this(); std::ranges::find(spilled_files_, shared) == spilled_files_.end())
    spilled_files_.push_back(shared);
  if (at.size() > 0 && !page->is_pinned()) cache_.leave_memory(*page);
  const auto place = place_of(*page);
  file.course.spilled[place] = {std::move(page), at};
}

/// Somebody waits for these to be in the file.
void Drainer::want_spilled(const CachedVariable &variable, Interval within) {
  if (!spill_ || variable.file == nullptr) return;
  const auto &spilled = variable.file->course.spilled;
  const auto varid = variable.variable.varid;
  auto at = spilled.lower_bound({varid, within.begin / variable.page_elements, 0});
  for (; at != spilled.end() && at->first.varid == varid && at->second.page->first() < within.end; ++at)
    wanted_.emplace_back(variable.file->weak_from_this(), at->first);
}

bool Drainer::start_wanted() {
  while (!wanted_.empty()) {
    const auto file = wanted_.front().first.lock();
    const auto found = file ? file->course.spilled.find(wanted_.front().second) : Spilled();
    const bool is_there = file && found != file->course.spilled.end() && !file->course.holds_back();
    if (is_there && !cache_.has_reserve() && found->second.page->is_away()) return false;
    wanted_.pop_front();
    if (!is_there || !may_start(file->course, found)) continue;
    start_spilled(file, found);
    return true;
  }
  return false;
}

/// False: there is none that may leave.
bool Drainer::start_next_spilled() {
  if (spilled_files_.empty() || is_held_back()) return false;
  for (const auto &file : spilled_files_) {
    auto &course = file->course;
    if (course.holds_back()) continue;
    for (auto at = course.spilled.begin(); at != course.spilled.end(); ++at) {
      if (!may_start(course, at)) continue;
      start_spilled(std::shared_ptr(file), at);
      return true;
    }
  }
  return false;
}

/// Whether a page is on its way nowhere, is the first of its place, and has memory to come to.
bool Drainer::may_start(const Course &course, Spilled spilled) const {
  if (spilled->second.is_busy || (spilled->second.page->is_away() && !cache_.has_reserve())) return false;
  return spilled == course.spilled.begin() || !std::prev(spilled)->first.is_same(spilled->first);
}

void Drainer::start_spilled(const std::shared_ptr<OpenFile> &file, Spilled spilled) {
  if (!spilled->second.page->is_away()) return submit_spilled(file, spilled);
  spilled->second.is_busy = true;
  cache_.prepare_return(*spilled->second.page);
  ++in_flight_;
  ++file->course.in_flight;
  runtime_.spawn([this, file, spilled] { bring_back(file, spilled); });
}

void Drainer::bring_back(const std::shared_ptr<OpenFile> &file, Spilled spilled) {
  auto &course = file->course;
  auto &page = *spilled->second.page;
  const auto got = spill_->get(spilled->second.at, page);
  --in_flight_;
  --course.in_flight;
  spilled->second.is_busy = false;
  cache_.note_return(page);
  if (got.ok() && course.holds_back() && course.stage != Course::Stage::kTries) {
    cache_.leave_memory(page);
  } else if (got.ok()) {
    submit_spilled(file, spilled);
  } else {
    nessie::log::error("what was spilled of {} is lost: {}", file->path, got.error().message);
    cache_.note_loss(page);
    auto lost = std::move(course.spilled.extract(spilled).mapped());
    if (course.spilled.empty()) std::erase(spilled_files_, file);
    cache_.go_on(page.owner(), page.index());
    finish(*file, std::move(lost.page), {.nc_error = NC_EREAD, .system_error = EIO});
    spill_->release(lost.at);
    look_at_course(file, false);
  }
  memory_freed_.notify_all();
  pump();
}

/// A page that is in memory goes to the I/O thread, and what is newer at its place may follow.
void Drainer::submit_spilled(const std::shared_ptr<OpenFile> &file, Spilled spilled) {
  auto &course = file->course;
  auto entry = std::move(course.spilled.extract(spilled).mapped());
  if (course.spilled.empty()) std::erase(spilled_files_, file);
  cache_.go_on(entry.page->owner(), entry.page->index());
  auto task = std::make_shared<DrainTask>();
  task->add(std::move(entry.page));
  if (entry.at.size() > 0) task->spilled = entry.at;
  start(task);
}

}  // namespace staging
