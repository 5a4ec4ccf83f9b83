// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/drainer.hpp>

#include <base/log.hpp>

#include <chrono>

namespace staging {

namespace {

constexpr std::size_t kPagesInFlight = 4;   // enough that the I/O thread never waits for the next
constexpr std::size_t kBoxesInCall = 1024;  // PnetCDF keeps some hundred bytes for each

/// Writes boxes that do not lie together in the page, in one call.
int write_packed(NativeFile &file, const Page &page, const std::vector<Box> &boxes) {
  static thread_local std::vector<std::byte> packed;
  const auto &variable = page.owner().variable;
  std::int64_t elements = 0;
  for (const auto &box : boxes) elements += box.elements();
  packed.resize(static_cast<std::size_t>(elements * variable.element_bytes));
  std::byte *end = packed.data();
  for (const auto &box : boxes) end = pack(page, variable, box, end);
  return file.write(variable.varid, boxes, packed.data());
}

/// The same for a record variable, whose boxes may have several records. They are taken apart: ncmpi_put_varn (1.12.3)
/// takes the data of a box's later records from the wrong place when other boxes follow.
int write_by_record(NativeFile &file, const Page &page, const std::vector<Box> &boxes) {
  std::vector<Box> single;
  for (const auto &box : boxes)
    for (std::int64_t record = 0; record < box.count[0]; ++record) {
      Box &one = single.emplace_back(box);
      one.start[0] += record;
      one.count[0] = 1;
      if (single.size() < kBoxesInCall) continue;
      if (int error = write_packed(file, page, single); error != 0) return error;
      single.clear();
    }
  return single.empty() ? 0 : write_packed(file, page, single);
}

/// Writes runs that do not lie together in the page, a call at a time: a page can have more of them than there is
/// memory for.
int write_scattered(NativeFile &file, const Page &page) {
  const auto &variable = page.owner().variable;
  const auto write = variable.is_record ? write_by_record : write_packed;
  std::vector<Box> boxes;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end)) {
    append_boxes(variable, run, boxes);
    if (boxes.size() < kBoxesInCall) continue;
    if (int error = write(file, page, boxes); error != 0) return error;
    boxes.clear();
  }
  return boxes.empty() ? 0 : write(file, page, boxes);
}

/// Writes a run. One of records has but a few boxes: its ends, and what is between.
int write_run(NativeFile &file, const Page &page, Interval run) {
  const auto &variable = page.owner().variable;
  std::byte *data = page.data() + (run.begin - page.first()) * variable.element_bytes;
  std::vector<Box> boxes;
  append_boxes(variable, run, boxes);
  if (!variable.is_record) return file.write(variable.varid, boxes, data);
  for (const auto &box : boxes) {
    if (int error = file.write(variable.varid, {box}, data); error != 0) return error;
    data += box.elements() * variable.element_bytes;
  }
  return 0;
}

int write_page(NativeFile &file, const Page &page) {
  const auto run = page.dirty_run(page.first());
  return run.size() == page.dirty_elements() ? write_run(file, page, run) : write_scattered(file, page);
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Drainer::Task {
  std::unique_ptr<Page> page;
  std::shared_ptr<OpenFile> file;
  NativeFile *native = nullptr;
  int nc_error = 0, system_error = 0;
  double started_s = 0, ended_s = 0;
};

void Drainer::touch_ahead(std::uint64_t bytes) {
  bytes_to_touch_ = bytes;
  touch_next();
}

void Drainer::touch_next() {
  const auto frame = bytes_to_touch_ > 0 ? cache_.memory().take_untouched() : PageMemory::Block{};
  if (!frame) return;
  bytes_to_touch_ -= std::min<std::uint64_t>(bytes_to_touch_, frame.size_bytes);
  io_.submit(IoQueue::Lane::kAhead, [this, frame] {
    PageMemory::touch(frame);
    runtime_.post([this, frame] {
      cache_.memory().add_warm(frame);
      memory_freed_.notify_all();
      touch_next();
    });
  });
}

void Drainer::end_touching() {
  bytes_to_touch_ = 0;
  io_.drop_ahead();
}

void Drainer::put(CachedVariable &variable, const Piece &piece, const std::byte *data) {
  Scatter scatter(variable, piece, data);
  for (;;) {
    const auto before = variable.dirty_bytes;
    const bool done = scatter.advance(cache_);
    pending_bytes_ += variable.dirty_bytes - before;
    if (done) return;
    ++starved_;
    pump();
    (void)memory_freed_.wait();
    --starved_;
  }
}

void Drainer::flush(const std::function<void(const std::shared_ptr<DrainWatch> &)> &request) {
  auto watch = std::make_shared<DrainWatch>();
  nssi::Event done(runtime_);
  watch->done = [&] { done.set(); };
  request(watch);
  pump();
  if (watch->left > 0) (void)done.wait();
}

void Drainer::flush(CachedVariable &variable, Interval within) {
  flush([&](const auto &watch) { cache_.request_drain(variable, within, PageState::kUrgent, watch); });
}

void Drainer::request(OpenFile &file, PageState priority, const std::shared_ptr<DrainWatch> &watch) {
  for (auto &variable : file.variables()) cache_.request_drain(*variable.cached, {0, INT64_MAX}, priority, watch);
}

void Drainer::flush(OpenFile &file, PageState priority) {
  flush([&](const auto &watch) { request(file, file.hastened ? PageState::kUrgent : priority, watch); });
}

void Drainer::hasten(OpenFile &file) {
  if (std::exchange(file.hastened, true)) return;
  request(file, PageState::kUrgent, nullptr);
  pump();
}

// Without somebody who waits for memory, pages of open files stay: what is written next may complete them.
void Drainer::pump() {
  while (in_flight_ < kPagesInFlight) {
    auto page = cache_.take(starved_ > 0 ? PageState::kPartial : PageState::kClosing);
    if (!page) return;
    start(std::move(page));
  }
}

void Drainer::start(std::unique_ptr<Page> page) {
  ++in_flight_;
  auto task = std::make_shared<Task>();
  task->file = page->owner().file->shared_from_this();
  task->native = task->file->native.get();
  task->page = std::move(page);
  io_.submit(IoQueue::Lane::kDrain, [this, task] {
    task->started_s = seconds_now();
    task->nc_error = write_page(*task->native, *task->page);
    if (task->nc_error != 0) task->system_error = task->native->write_errno();
    task->ended_s = seconds_now();
    runtime_.post([this, task] { finish(*task); });
  });
}

void Drainer::finish(Task &task) {
  --in_flight_;
  auto &cached = task.page->owner();
  const auto bytes = static_cast<std::uint64_t>(task.page->dirty_elements() * cached.variable.element_bytes);
  pending_bytes_ -= bytes;
  statistics_.busy_drain_s += task.ended_s - task.started_s;
  statistics_.last_drain_s = task.ended_s;
  auto &variable = *task.file->find(cached.variable.varid);
  if (task.nc_error == 0) {
    statistics_.bytes_drained += bytes;
    task.file->reached_file(variable, *task.page);
  } else {
    if (!task.file->lost_anything())
      nessie::log::error("cannot write {}: {}", task.file->path, native_message(task.nc_error, task.system_error));
    task.file->failed(variable, *task.page, task.nc_error, task.system_error);
  }
  cache_.give_back(std::move(task.page));
  task.file->note_ledger(variable);
  memory_freed_.notify_all();
  pump();
}

}  // namespace staging
