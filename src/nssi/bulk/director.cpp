// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Handlers wait each for an event of their own. Whoever adds to the queue, leaves it, or releases memory
// lets through, with the lock held, those whose turn has come. When it is only time that is waited for (bandwidth), one
// of the waiting, the keeper, wakes up by then to do so; one who leaves names the next. So no thread and no fiber is
// needed for the clock, which might find no place where all fibers wait here.
#include <nssi/director.hpp>

#include <fmt/format.h>

#include <nssi/bulk/director_queue.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace nssi {

class DirectorState {
 public:
  explicit DirectorState(DirectorOptions options) : queue_(std::move(options)) {}
  Status wait(Runtime &runtime, Request &request, const Ask &ask, Deadline deadline);
  void release(std::uint64_t size_bytes);
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return queue_.waiting();
  }
  std::uint64_t used_bytes() const {
    const std::lock_guard lock(mutex_);
    return queue_.used_bytes();
  }

 private:
  /// A handler, on its stack.
  struct Waiter {
    std::optional<Event> event;  ///< while it sleeps; a new one each time
    bool is_through = false;
    void wake() {
      if (event) event->set();
    }
  };
  Status sleep(Runtime &runtime, Request &request, Waiter &self, Deadline deadline, std::unique_lock<std::mutex> &lock);
  void let_through();
  void set_alarm();
  void leave(const Waiter &self);

  mutable std::mutex mutex_;
  DirectorQueue queue_;
  std::unordered_map<std::uint64_t, Waiter *> waiters_;  ///< by the number of their ask
  Waiter *keeper_ = nullptr;
  Deadline alarm_ = Deadline::never();  ///< when the keeper wakes up
};

Status DirectorState::wait(Runtime &runtime, Request &request, const Ask &ask, Deadline deadline) {
  Waiter self;
  std::unique_lock lock(mutex_);
  const auto number = queue_.add(ask);
  waiters_.emplace(number, &self);
  let_through();
  Status status;
  while (!self.is_through && status.ok()) {
    status = sleep(runtime, request, self, deadline, lock);
    if (!self.is_through && status.ok()) let_through();
  }
  if (!self.is_through) {
    queue_.remove(number);
    waiters_.erase(number);
  }
  leave(self);
  return self.is_through ? Status() : status;
}

/// Until it is woken, or, as the keeper, by the alarm. Not ok: it waits no longer.
Status DirectorState::sleep(Runtime &runtime, Request &request, Waiter &self, Deadline deadline,
                            std::unique_lock<std::mutex> &lock) {
  auto until = deadline;
  if (keeper_ == &self) until = deadline.earlier(alarm_ = queue_.next_time());
  self.event.emplace(runtime);
  lock.unlock();
  auto status = request.wait(*self.event, until);
  lock.lock();
  self.event.reset();
  if (status.ok() || (status.code() == Code::kTimedOut && !deadline.passed())) return {};
  if (status.code() == Code::kTimedOut)
    return Error{Code::kTimedOut, "the transfer's turn did not come before the deadline; nothing was moved"};
  if (status.code() == Code::kInvalidArgument)
    return Error{Code::kInvalidArgument,
                 "the transfer has to wait for its turn, which only a handler that is a fiber can"};
  return status;
}

void DirectorState::let_through() {
  while (const auto number = queue_.next(Clock::now())) {
    const auto waiter = waiters_.find(*number);
    waiter->second->is_through = true;
    waiter->second->wake();
    waiters_.erase(waiter);
  }
  set_alarm();
}

/// Somebody must be awake when the first's turn comes by time alone.
void DirectorState::set_alarm() {
  const auto next_time = queue_.next_time();
  if (next_time.is_never() || waiters_.empty()) return;
  if (keeper_ != nullptr && !(next_time.when() < alarm_.when())) return;
  if (keeper_ == nullptr) keeper_ = waiters_.begin()->second;
  alarm_ = next_time;
  keeper_->wake();
}

void DirectorState::leave(const Waiter &self) {
  if (keeper_ == &self) {
    keeper_ = nullptr;
    alarm_ = Deadline::never();
  }
  let_through();
}

void DirectorState::release(std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  queue_.release(size_bytes);
  let_through();
}

// --- Grant ------------------------------------------------------------------------------------------------------------

Grant::Grant(Grant &&other) noexcept
    : state_(std::move(other.state_)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Grant &Grant::operator=(Grant &&other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::move(other.state_);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

void Grant::release() {
  if (const auto state = std::move(state_)) state->release(std::exchange(size_bytes_, 0));
}

// --- Director ---------------------------------------------------------------------------------------------------------

Director::Director(Runtime &runtime, DirectorOptions options)
    : runtime_(runtime), state_(std::make_shared<DirectorState>(std::move(options))) {}
Director::~Director() = default;

Result<Grant> Director::admit(Request &request, std::uint64_t size_bytes, const Target &target, Deadline deadline) {
  const Ask ask{size_bytes, request.caller(), target, Clock::now()};
  const auto status = state_->wait(runtime_, request, ask, deadline.earlier(request.deadline()));
  if (!status.ok()) return status.error();
  return Grant(state_, size_bytes);
}

Result<Pulled> Director::pull(Request &request, std::uint64_t offset, std::size_t size_bytes, const Target &target,
                              Deadline deadline) {
  auto grant = admit(request, size_bytes, target, deadline);
  if (!grant.ok()) return grant.error();
  auto memory = Memory::borrow(runtime_, size_bytes);
  if (!memory.ok()) return memory.error();
  if (auto status = request.get_data(memory->bytes(), offset); !status.ok()) return status.error();
  return Pulled(*std::move(grant), *std::move(memory));
}

Status Director::push(Request &request, std::span<const std::byte> source, std::uint64_t offset, const Target &target,
                      Deadline deadline) {
  const auto grant = admit(request, source.size(), target, deadline);
  return grant.ok() ? request.put_data(source, offset) : Status(grant.error());
}

std::size_t Director::waiting() const { return state_->waiting(); }
std::uint64_t Director::used_bytes() const { return state_->used_bytes(); }

}  // namespace nssi
