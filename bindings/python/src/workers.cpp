// SPDX-License-Identifier: BSD-3-Clause
#include "workers.hpp"

namespace nessie_python {

namespace {

constexpr std::size_t kKeptPart = 8;

}  // namespace

void Workers::give(Job job, nssi::PeerId caller) {
  std::lock_guard lock(mutex_);
  if (closed_) return job.desk->leave();  // which asked for nothing yet
  jobs_.push(std::move(job), nssi::Priority::kNormal, caller);
  changed_.notify_one();
}

std::optional<Workers::Job> Workers::next() {
  if (!origin_.is_here()) return std::nullopt;
  for (;;) {
    std::optional<Job> job;
    {
      const Released released;
      std::unique_lock lock(mutex_);
      ++idle_;
      changed_.wait(lock, [&] { return closed_ || (job = pick()); });
      --idle_;
      if (!job) return std::nullopt;
    }
    if (job->desk->is_wanted()) return job;
    finish(*job->desk);
  }
}

/// With the mutex.
std::optional<Workers::Job> Workers::pick() {
  const auto kept = most_ / kKeptPart;
  auto job = jobs_.take_if([&](nssi::PeerId caller) {
    const auto place = busy_.find(caller.value);
    const bool has_little = place == busy_.end() || place->second < kept;
    return has_little || all_busy_ + kept < most_;
  });
  if (job) count(job->desk->caller(), 1);
  return job;
}

/// With the mutex.
void Workers::count(std::uint64_t caller, int more) {
  const auto place = busy_.try_emplace(caller).first;
  place->second += more;
  all_busy_ += more;
  if (place->second == 0) busy_.erase(place);
}

void Workers::finish(Desk &desk) {
  if (!origin_.is_here()) return;
  desk.leave();
  std::lock_guard lock(mutex_);
  count(desk.caller(), -1);
}

bool Workers::claim_another() {
  std::lock_guard lock(mutex_);
  if (idle_ != 0 || count_ >= most_) return false;
  ++count_;
  return true;
}

/// Handlers that wait for a thread of their own end without a result.
void Workers::close() {
  nssi::SharedQueues<Job> jobs;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    std::swap(jobs, jobs_);
  }
  changed_.notify_all();
  while (!jobs.empty()) jobs.take().one.desk->leave();
}

namespace {

py::object next_of(Workers &workers) {
  auto job = workers.next();
  if (!job) return py::none();
  return py::make_tuple(job->desk, *job->handler);
}

}  // namespace

void bind_workers(py::module_ &module) {
  py::class_<Workers, std::shared_ptr<Workers>>(module, "Workers")
      .def("next", &next_of)
      .def("finish", [](Workers &workers, Desk &desk) { workers.finish(desk); })
      .def("claim_another", &Workers::claim_another);
}

}  // namespace nessie_python
