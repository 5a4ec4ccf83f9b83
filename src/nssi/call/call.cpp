// SPDX-License-Identifier: BSD-3-Clause
// What who holds a call does with it: waits, for one or the first of several, and lets it go.
#include <nssi/call/client.hpp>
#include <nssi/drive/core.hpp>
#include <nssi/wire/coarse_clock.hpp>

#include <algorithm>
#include <deque>

namespace nssi {

namespace {

/// How long one of several runtimes is looked at.
constexpr std::chrono::microseconds kGlance{200};

std::vector<Call *> pointers_to(std::span<Call> calls) {
  std::vector<Call *> pointers;
  for (auto &call : calls) pointers.push_back(&call);
  return pointers;
}

}  // namespace

void Call::drop() {
  auto &call = *std::exchange(state_, nullptr);
  if (call.client == nullptr) return delete &call;
  auto &client = *call.client;
  if (call.callback) client.forget_callback(call);
  const bool is_pending = !call.is_one_way && !call.done.load(std::memory_order_acquire);
  if (is_pending && !client.core().birth().was_here()) return;
  if (is_pending) client.cancel(call, Error{Code::kCancelled, "the call was dropped"}, call.deadline);
  client.release(call);
}

bool Call::test() {
  if (!state_ || state_->done.load(std::memory_order_acquire)) return true;
  state_->client->core().poke();
  if (state_->done.load(std::memory_order_acquire)) return true;
  if (!has_passed(state_->deadline)) return false;
  (void)wait(Deadline::now());
  return true;
}

Status Call::wait(Deadline deadline) {
  if (!state_) return Error{Code::kInvalidArgument, "there is no call to wait for"};
  auto &call = *state_;
  if (call.done.load(std::memory_order_acquire)) return call.status;
  auto &core = call.client->core();
  core.wait_until(call.done, call.waiter, deadline.earlier(call.deadline));
  if (call.done.load(std::memory_order_acquire)) return call.status;
  if (core.closing()) return Error{Code::kCancelled, "the runtime is being destroyed"};
  if (!call.deadline.passed()) return Error{Code::kTimedOut, "the result is not here yet"};
  call.client->time_out(call);
  return call.status;
}

void Call::cancel() {
  if (is_over() || !state_->client->core().birth().was_here()) return;
  state_->client->cancel(*state_, Error{Code::kCancelled, "the call was cancelled"}, state_->deadline);
}

bool Call::is_over() const { return !state_ || state_->done.load(std::memory_order_acquire); }

void Call::when_over(std::function<void()> callback) {
  if (!state_ || state_->client == nullptr) return callback();
  state_->client->set_callback(*state_, std::move(callback));
}

/// A thread or fiber that waits for calls of one runtime.
struct Call::Watcher {
  explicit Watcher(Core &whose) : core(&whose) {}
  Core *core;
  Watch watch;
};

std::optional<std::size_t> Call::first_over(std::span<Call *const> calls) {
  const auto found = std::ranges::find_if(calls, [](const Call *call) { return call != nullptr && call->is_over(); });
  return found == calls.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - calls.begin()));
}

/// `watch`: null, they are watched no more.
void Call::set_watch(std::span<Call *const> calls, Core &core, Watch *watch) {
  core.run_as_driver([&] {
    for (const auto *call : calls) {
      if (call == nullptr || &call->state_->client->core() != &core) continue;
      call->state_->watch = watch;
      if (watch != nullptr && call->is_over()) watch->done.store(true);
    }
  });
}

Result<std::size_t> wait_any(std::span<Call *const> calls, Deadline deadline) {
  if (const auto place = Call::first_over(calls)) return *place;
  std::deque<Call::Watcher> watchers;  // they stay where they are
  for (auto *call : calls) {
    if (call == nullptr) continue;
    deadline = deadline.earlier(call->state_->deadline);
    auto &core = call->state_->client->core();
    if (std::ranges::find(watchers, &core, &Call::Watcher::core) == watchers.end()) watchers.emplace_back(core);
  }
  if (watchers.empty()) return Error{Code::kInvalidArgument, "there is no call to wait for"};
  for (auto &each : watchers) Call::set_watch(calls, *each.core, &each.watch);
  const auto is_closing = [&] {
    return std::ranges::any_of(watchers, [](const auto &each) { return each.core->closing(); });
  };
  do
    for (auto &[core, watch] : watchers) {
      core->poke();
      const bool is_alone = watchers.size() == 1;
      core->wait_until(watch.done, watch.waiter, is_alone ? deadline : deadline.earlier(Deadline::in(kGlance)));
    }
  while (!Call::first_over(calls) && !deadline.passed() && !is_closing() && watchers.size() > 1);
  for (auto &each : watchers) Call::set_watch(calls, *each.core, nullptr);
  for (auto *call : calls)
    if (call != nullptr && !call->is_over() && call->state_->deadline.passed()) (void)call->wait(Deadline::now());
  if (const auto place = Call::first_over(calls)) return *place;
  if (is_closing()) return Error{Code::kCancelled, "the runtime is being destroyed"};
  return Error{Code::kTimedOut, "none of the results is here yet"};
}

Result<std::size_t> wait_any(std::span<Call> calls, Deadline deadline) {
  return wait_any(pointers_to(calls), deadline);
}

Status wait_all(std::span<Call *const> calls, Deadline deadline) {
  Status first;
  for (auto *call : calls) {
    if (call == nullptr) continue;
    auto status = call->wait(deadline);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status wait_all(std::span<Call> calls, Deadline deadline) { return wait_all(pointers_to(calls), deadline); }

std::span<const std::byte> Call::view() const {
  if (!state_) return {};
  if (state_->long_result) return state_->long_result->bytes();
  return state_->result;
}

}  // namespace nssi
