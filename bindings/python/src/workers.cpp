// SPDX-License-Identifier: BSD-3-Clause
#include "workers.hpp"

namespace nessie_python {

void Workers::give(Job job, nssi::PeerId caller) {
  std::lock_guard lock(mutex_);
  if (closed_) return job.desk->leave();  // which asked for nothing yet
  jobs_.push(std::move(job), nssi::Priority::kNormal, caller);
  changed_.notify_one();
}

std::optional<Workers::Job> Workers::next() {
  if (!origin_.is_here()) return std::nullopt;
  const Released released;
  std::unique_lock lock(mutex_);
  ++idle_;
  changed_.wait(lock, [&] { return closed_ || !jobs_.empty(); });
  --idle_;
  if (closed_) return std::nullopt;
  return jobs_.take().first;
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
  while (!jobs.empty()) jobs.take().first.desk->leave();
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
      .def("claim_another", &Workers::claim_another);
}

}  // namespace nessie_python
