// SPDX-License-Identifier: BSD-3-Clause
// The lock, progress and callbacks of a context.
#include "nnti/work/context_impl.hpp"
#include "nnti/endpoint/eager.hpp"

#include <base/log.hpp>

#include <unistd.h>

#include <exception>

namespace nnti {

Context::Impl::Impl() : me{nessie::random_u64() | 1} {}

Context::Impl::~Impl() {
  if (endpoint) close();
  if (progress_fd >= 0) ::close(progress_fd);
}

Status Context::Impl::open(ContextOptions options) {
  variable_count = options.atomic_variables;
  auto settings = RendezvousSettings::from(options.config);
  if (!settings.ok()) return settings.error();
  rendezvous = *settings;
  auto most = eager_max_of(options.config);
  if (!most.ok()) return most.error();
  eager_max = *most;
  auto opened = Endpoint::open(std::move(options), *this);
  if (!opened.ok()) return opened.error();
  endpoint = std::move(*opened);
  crew.set_endpoint(endpoint.get());
  url = endpoint->url();
  return {};
}

void Context::Impl::close() {
  auto guard = crew.lock();
  if (closed) return;
  closed = true;
  crew.close(guard);
  due.clear();
  await_callback(guard);
  disarm_descriptors();
  std::vector<std::uint64_t> ids;
  for (const auto &[id, peer] : peers) ids.push_back(id);
  for (const auto id : ids) endpoint->disconnect({id});
  end_measuring(std::nullopt);
  buffers.clear();
  operations.for_each([](Operation &operation) { operation.exposed.clear(); });
  crew.set_endpoint(nullptr);
  endpoint.reset();
  for (auto &queue : std::exchange(watched_queues, {})) queue->closed = true;
}

void Context::Impl::enter() {
  if (armed) disarm_descriptors();
}

void Context::Impl::exit(Crew::Guard &guard) {
  if (closed) return;
  settle();
  if (!due.empty()) run_callbacks(guard);
  if (!watched_queues.empty() && !closed) arm_descriptors();
}

bool Context::Impl::turn(Crew::Guard &guard) {
  if (armed) disarm_descriptors();
  const bool happened = endpoint->progress() > 0;
  settle();
  if (!due.empty()) run_callbacks(guard);
  return happened;
}

/// Works off what endpoint callbacks have noted, then wakes the threads that waited for it.
void Context::Impl::settle() {
  while (!finished.empty() || !lost.empty() || !outbox.empty()) {
    for (std::size_t i = 0; i < finished.size(); ++i)
      if (auto *operation = operations.find(finished[i])) finish(*operation, operation->code);
    finished.clear();
    for (auto &[peer, code] : std::exchange(lost, {})) forget_peer(peer, code);
    flush_outbox();
    if (finished.empty() && lost.empty()) break;
  }
  if (!dirty) return;
  dirty = false;
  crew.serve();
}

/// The next callback that somebody still wants; empty: there is none.
std::function<void()> Context::Impl::next_callback() {
  while (!due.empty()) {
    auto next = std::move(due.front());
    due.pop_front();
    if (const auto *index = std::get_if<std::uint64_t>(&next)) {
      auto watched = watched_variables.find(*index);
      if (watched != watched_variables.end()) return watched->second;
    } else if (auto &[queue, event] = std::get<1>(next); !queue->closed) {
      return [kept = std::move(queue), what = std::move(event)] { kept->on_event(what); };
    }
  }
  return {};
}

/// One thread at a time, so that they come in order; others leave theirs to it.
void Context::Impl::run_callbacks(Crew::Guard &guard) {
  if (callback_thread != std::thread::id()) return;
  callback_thread = std::this_thread::get_id();
  while (auto callback = next_callback()) {
    guard.unlock();
    try {
      callback();
    } catch (const std::exception &error) { nessie::log::error("NNTI: a callback threw: {}", error.what()); }
    callback = nullptr;
    guard.lock();
    ++callbacks_run;
    callback_ended.notify_all();
    crew.claim(guard);
    if (armed) disarm_descriptors();
  }
  callback_thread = {};
  callback_ended.notify_all();
}

/// Returns when the callback that runs now, in another thread, has ended.
void Context::Impl::await_callback(Crew::Guard &guard) {
  if (callback_thread == std::this_thread::get_id()) return;
  const auto now = callbacks_run;
  callback_ended.wait(guard, [&] { return callback_thread == std::thread::id() || callbacks_run != now; });
  crew.claim(guard);
  if (armed) disarm_descriptors();
}

Status Context::Impl::to_status(Ended ended) const {
  switch (ended) {
    case Ended::kTimedOut:
      return Error{Code::kTimedOut, "the time passed; the operation goes on and can be waited for again"};
    case Ended::kInterrupted: return Error{Code::kInterrupted, "the wait was interrupted; it can be begun again"};
    case Ended::kClosed: return Error{Code::kCancelled, "the transport was closed"};
    default: return {};
  }
}

}  // namespace nnti
