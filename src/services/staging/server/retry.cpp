// SPDX-License-Identifier: BSD-3-Clause
// Drains that fail with an error that may pass: a disk that is full, a server that is away.
//
// Design notes. Pages of one place must come to the file in the order in which they were taken out of the cache. So
// when one has failed, the I/O thread tries none of those that are on their way behind it; they wait together, and what
// is still in the cache is held back there. Of what waits the first is tried again, and when it has been written the
// others follow. What fails when the user's patience has ended is given up: each page is tried once more before that.
#include <services/staging/server/drain_task.hpp>
#include <services/staging/server/drainer.hpp>
#include <services/staging/server/page_writer.hpp>

#include <base/log.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <cerrno>

namespace staging {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100}, kLongestPause{10'000};

std::vector<Interval> runs_of(const Page &page) {
  std::vector<Interval> runs;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end)) runs.push_back(run);
  return runs;
}

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void DrainTask::write(NativeFile &native, bool is_only_writer) {
  auto &is_stopped = file->course.is_stopped;
  started_s = seconds_now();
  if (is_stopped)
    outcomes.assign(pages.size(), PageOutcome{.was_tried = false});
  else
    write_now(native, is_only_writer);
  if (is_patient && std::ranges::any_of(outcomes, may_pass)) is_stopped = true;
  ended_s = seconds_now();
}

void DrainTask::write_now(NativeFile &native, bool is_only_writer) {
  auto *read_back = file->read_back.get();
  if (read_back == nullptr) {
    outcomes = write_pages(native, pages, is_only_writer, is_patient);
    return;
  }
  for (const auto &page : pages) read_back->forget(native, page->owner().variable, runs_of(*page));
  outcomes = write_pages(native, pages, is_only_writer, is_patient);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!outcomes[i].was_tried || outcomes[i].nc_error != 0) continue;
    const auto &variable = pages[i]->owner().variable;
    for (const auto &run : runs_of(*pages[i])) {
      const auto bytes = static_cast<std::size_t>(run.size() * variable.element_bytes);
      read_back->note(native, variable, run, {pages[i]->at(run.begin), bytes});
    }
  }
}

/// Who writes in direct mode is told of each error that he does not want to wait for, and nothing of it is kept.
bool Drainer::is_patient(const OpenFile &file) const {
  return options_.patience.count() > 0 && file.course.stage != Course::Stage::kGivesUp &&
         !(file.is_direct && options_.fails_fast);
}

void Drainer::wait_with(OpenFile &file, std::unique_ptr<Page> page, const PageOutcome &outcome,
                        const std::optional<LogRange> &spilled) {
  if (outcome.was_tried) note_failure(file, outcome);
  if (spilled) return keep_spilled(file, std::move(page), *spilled);
  const auto number = page->number();
  file.course.waiting.emplace(number, std::move(page));
}

void Drainer::note_failure(OpenFile &file, const PageOutcome &outcome) {
  auto &course = file.course;
  course.why = outcome;
  if (course.since_s != 0) return;
  course.since_s = seconds_now();
  course.pause = kFirstPause;
  if (options_.fails_fast) file.tell(outcome.nc_error);
  if (course.stage == Course::Stage::kFine && !outcome.is_damaged) warn(file, outcome);
}

void Drainer::warn(const OpenFile &file, const PageOutcome &outcome) const {
  nessie::log::warning("cannot write {} now: {}; this is tried again for {} s (NESSIE_STAGING_PATIENCE)", file.path,
                       native_message(outcome.nc_error, outcome.system_error), seconds(options_.patience));
}

void Drainer::note_written(OpenFile &file) {
  file.course.since_s = 0;
  file.course.has_written = true;
}

/// After something of the file has come back from the I/O thread.
void Drainer::look_at_course(const std::shared_ptr<OpenFile> &file, bool has_failed) {
  using Stage = Course::Stage;
  auto &course = file->course;
  if (course.stage == Stage::kFine && !has_failed) return;
  if (has_failed) {
    if (course.stage == Stage::kFine) stuck_.push_back(file);
    if (course.stage == Stage::kTries) course.pause = std::min(2 * course.pause, kLongestPause);
    course.stage = Stage::kWaits;
    return try_again_later(file);
  }
  if (course.stage == Stage::kTries) course.stage = Stage::kGoesOn;
  if (!course.lets_go() || !course.waiting.empty()) return;
  if (course.stage == Stage::kGoesOn || course.has_written) course.stage = Stage::kFine;
  std::erase(stuck_, file);
  cache_.go_on(*file);
}

void Drainer::try_again_later(const std::shared_ptr<OpenFile> &file) {
  runtime_.spawn([this, file] {
    const auto &course = file->course;
    const auto left = duration_cast<milliseconds>(
        std::chrono::duration<double>(course.since_s + seconds(options_.patience) - seconds_now()));
    nssi::Event never(runtime_);
    auto status = never.wait(nessie::Deadline::in(std::clamp(left, milliseconds(1), course.pause)));
    while (course.in_flight > 0 && status.code() != nessie::Code::kCancelled) status = memory_freed_.wait();
    if (status.code() != nessie::Code::kCancelled) try_again(file);
  });
}

void Drainer::try_again(const std::shared_ptr<OpenFile> &file) {
  auto &course = file->course;
  if (!has_patience_since(course.since_s)) return give_up(*file);
  const auto first = course.waiting.begin();
  auto spilled = course.spilled.begin();
  if (first != course.waiting.end()) spilled = course.before(*first->second);
  if (spilled != course.spilled.end() && !may_start(course, spilled)) return try_again_later(file);
  course.stage = Course::Stage::kTries;
  if (spilled != course.spilled.end()) return start_spilled(file, spilled);
  auto page = std::move(course.waiting.extract(first).mapped());
  if (!make_sound(*file, *page)) {
    finish(*file, std::move(page), {.nc_error = NC_EREAD, .system_error = EIO});
    look_at_course(file, false);
    memory_freed_.notify_all();
    return pump();
  }
  auto task = std::make_shared<DrainTask>();
  task->add(std::move(page));
  start(task);
}

void Drainer::give_up(OpenFile &file) {
  auto &course = file.course;
  course.stage = Course::Stage::kGivesUp;
  course.has_written = false;
  for (Page *held : cache_.held_back(file)) {
    if (course.has_before(*held)) continue;
    auto page = cache_.take(*held);
    const auto number = page->number();
    course.waiting.emplace(number, std::move(page));
  }
  pump();
}

/// False: nothing that has waited may leave.
bool Drainer::start_what_waited() {
  for (const auto &file : stuck_) {
    auto &course = file->course;
    auto &waiting = course.waiting;
    if (!course.lets_go() || waiting.empty()) continue;
    if (const auto before = course.before(*waiting.begin()->second); before != course.spilled.end()) {
      if (!may_start(course, before)) continue;
      return start_spilled(file, before), true;
    }
    auto task = std::make_shared<DrainTask>();
    while (!waiting.empty() && !course.has_before(*waiting.begin()->second) && joins(*waiting.begin()->second, *task))
      task->add(std::move(waiting.extract(waiting.begin()).mapped()));
    return start(task), true;
  }
  return false;
}

PageOutcome Drainer::insist(OpenFile &file, bool tells_at_once, const std::function<PageOutcome()> &call) {
  auto outcome = call();
  const bool is_patient = options_.patience.count() > 0 && !(tells_at_once && options_.fails_fast);
  if (!is_patient || !may_pass(outcome)) return outcome;
  const auto since_s = seconds_now();
  const auto own = insisting_.insert(insisting_.end(), {file, {outcome, since_s}});
  warn(file, outcome);
  for (auto pause = kFirstPause; may_pass(outcome) && has_patience_since(since_s);
       pause = std::min(2 * pause, kLongestPause)) {
    const auto left = std::chrono::duration<double>(since_s + seconds(options_.patience) - seconds_now());
    nssi::Event never(runtime_);
    const auto until = nessie::Deadline::in(std::clamp(duration_cast<milliseconds>(left), milliseconds(1), pause));
    if (never.wait(until).code() == nessie::Code::kCancelled) break;
    own->second.why = outcome = call();
  }
  insisting_.erase(own);
  return outcome;
}

bool Drainer::has_patience_since(double since_s) const { return seconds_now() < since_s + seconds(options_.patience); }

std::optional<Trouble> Drainer::trouble_of(const OpenFile &file) const {
  if (file.course.since_s != 0) return Trouble{file.course.why, file.course.since_s};
  const auto found = std::ranges::find_if(insisting_, [&](const auto &call) { return &call.first == &file; });
  return found != insisting_.end() ? std::optional(found->second) : std::nullopt;
}

StuckFile Drainer::stuck(const OpenFile &file, const Trouble &trouble) const {
  const auto tried_s = seconds_now() - trouble.since_s;
  return {file.path, native_message(trouble.why.nc_error, trouble.why.system_error), tried_s,
          std::max(0.0, seconds(options_.patience) - tried_s)};
}

std::vector<StuckFile> Drainer::stuck() const {
  std::vector<StuckFile> files;
  for (const auto &file : stuck_)
    if (file->course.since_s != 0) files.push_back(stuck(*file, {file->course.why, file->course.since_s}));
  for (const auto &[file, trouble] : insisting_)
    if (file.course.since_s == 0) files.push_back(stuck(file, trouble));
  return files;
}

int Drainer::flush_for_program(OpenFile &file) {
  if (!options_.fails_fast) return flush(file, PageState::kUrgent);
  auto watch = std::make_shared<DrainWatch>();
  request(file, PageState::kUrgent, watch);
  pump();
  while (watch->left > 0 && file.course.since_s == 0)
    if (memory_freed_.wait().code() == nessie::Code::kCancelled) break;
  return watch->left > 0 ? file.course.why.nc_error : watch->nc_error;
}

}  // namespace staging
