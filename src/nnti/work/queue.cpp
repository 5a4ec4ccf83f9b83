// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: their events, callbacks, and descriptors for an application's own event loop.
//
// Design notes. A queue's descriptor is an epoll set of three: the endpoint's (what the transports wait on), one that
// says that there are events, and one that says that progress is needed at once. The endpoint must be armed before
// somebody else may sleep on its descriptor, and disarmed before it is used again: so every call disarms first and arms
// last, and a thread that drives the endpoint leaves it alone.
#include "nnti/work/context_impl.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace nnti {

namespace {

void raise(int descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor, &one, sizeof one);
}

void lower(int descriptor) {
  std::uint64_t count;
  [[maybe_unused]] const auto read = ::read(descriptor, &count, sizeof count);
}

bool add(int set, int descriptor) {
  epoll_event interest{};
  interest.events = EPOLLIN;
  interest.data.fd = descriptor;
  return ::epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &interest) == 0;
}

Error no_descriptor() { return {Code::kIo, "the system has no descriptors left", nessie::Scope::kOperation, errno}; }

}  // namespace

CompletionQueue::Impl::~Impl() {
  if (event_fd >= 0) ::close(event_fd);
  if (epoll_fd >= 0) ::close(epoll_fd);
}

void Context::Impl::to_queue(const std::shared_ptr<QueueImpl> &queue, Event event) {
  dirty = true;
  if (queue->on_event) {
    due.emplace_back(std::pair(queue, std::move(event)));
    return;
  }
  queue->events.push_back(std::move(event));
  signal(*queue);
}

/// The descriptor is readable while there are events.
void Context::Impl::signal(QueueImpl &queue) {
  if (queue.event_fd < 0 || queue.signalled == !queue.events.empty()) return;
  queue.signalled = !queue.signalled;
  queue.signalled ? raise(queue.event_fd) : lower(queue.event_fd);
}

Status Context::Impl::bind(const std::shared_ptr<QueueImpl> &queue, BufferId id) {
  Registration *buffer = find_buffer(id.value);
  if (buffer == nullptr) return Error{Code::kNotFound, "the buffer is not registered (any more)"};
  if (buffer->queue) return Error{Code::kExists, "the buffer's completions go to a queue already"};
  buffer->queue = queue;
  for (auto &event : std::exchange(buffer->events, {})) to_queue(queue, std::move(event));
  return {};
}

Status Context::Impl::bind(const std::shared_ptr<QueueImpl> &queue, RequestId id) {
  auto found = find_request(id);
  if (!found.ok()) return found.error();
  Request &request = **found;
  if (request.queue) return Error{Code::kExists, "the request's completion goes to a queue already"};
  if (request.state == Request::State::kTaken)
    return Error{Code::kInvalidArgument, "the request's completion was taken; clear it first"};
  request.queue = queue;
  if (request.state == Request::State::kReady) {
    to_queue(queue, request.event);
    request.state = Request::State::kTaken;
    if (!request.of_buffer) requests.erase(request);
    return {};
  }
  Registration *buffer = find_buffer(request.buffer.value);
  if (!request.of_buffer || buffer == nullptr) return {};
  buffer->queued_requests.push_back(id);
  feed_requests(*buffer);
  return {};
}

void Context::Impl::close_queue(Call &call, const std::shared_ptr<QueueImpl> &queue) {
  queue->closed = true;
  for (auto &[id, buffer] : buffers) {
    if (buffer.queue != queue) continue;
    buffer.queue.reset();
    for (auto &event : queue->events)
      if (event.buffer.value == id && event.request.value == 0) buffer.events.push_back(std::move(event));
  }
  requests.for_each([&](Request &request) {
    if (request.queue == queue) request.queue.reset();
  });
  std::erase(watched_queues, queue);
  dirty = true;
  if (queue->on_event) await_callback(call.guard);
}

// --- descriptors ------------------------------------------------------------------------------------------------------

Result<int> Context::Impl::watch(const std::shared_ptr<QueueImpl> &queue) {
  if (queue->epoll_fd >= 0) return queue->epoll_fd;
  auto endpoint_fd = endpoint->wait_fd();
  if (!endpoint_fd.ok()) return endpoint_fd.error();
  if (progress_fd < 0) progress_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (queue->event_fd < 0) queue->event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (progress_fd < 0 || queue->event_fd < 0 || set < 0 || !add(set, *endpoint_fd) || !add(set, progress_fd) ||
      !add(set, queue->event_fd)) {
    const auto error = no_descriptor();
    if (set >= 0) ::close(set);
    return error;
  }
  queue->epoll_fd = set;
  watched_queues.push_back(queue);
  signal(*queue);
  return set;
}

/// Lets descriptors tell that progress is needed, unless a thread of ours sees to it.
void Context::Impl::arm_descriptors() {
  if (crew.has_driver() || armed) return;
  if (!due.empty() || !endpoint->arm()) return raise(progress_fd);
  armed = true;
}

void Context::Impl::disarm_descriptors() {
  if (!std::exchange(armed, false)) return;
  endpoint->disarm();
}

// --- the public class -------------------------------------------------------------------------------------------------

using Call = Context::Impl::Call;

CompletionQueue::CompletionQueue(std::shared_ptr<Context::Impl> context, std::shared_ptr<Impl> impl)
    : context_(std::move(context)), impl_(std::move(impl)) {}

CompletionQueue::~CompletionQueue() {
  if (!context_->birth.was_here()) {
    nessie::leave(std::move(context_));
    return;
  }
  Call call(*context_);
  context_->close_queue(call, impl_);
}

Status CompletionQueue::bind(BufferId buffer) {
  return context_->in_call([&](Call &) { return context_->bind(impl_, buffer); });
}

Status CompletionQueue::bind(RequestId request) {
  return context_->in_call([&](Call &) { return context_->bind(impl_, request); });
}

std::size_t CompletionQueue::poll(std::span<Event> events) {
  Call call(*context_);
  if (context_->progress_fd >= 0) lower(context_->progress_fd);
  if (!context_->closed) context_->turn(call.guard);
  std::size_t count = 0;
  for (; count < events.size() && !impl_->events.empty(); ++count) {
    events[count] = std::move(impl_->events.front());
    impl_->events.pop_front();
  }
  context_->signal(*impl_);
  return count;
}

Result<Event> CompletionQueue::wait(Deadline deadline) {
  Call call(*context_);
  if (context_->closed) return closed_error();
  if (impl_->on_event) return Error{Code::kInvalidArgument, "the queue hands its events to a callback"};
  Event event;
  auto status = context_->wait_until(call, deadline, [&] {
    if (impl_->events.empty()) return false;
    event = std::move(impl_->events.front());
    impl_->events.pop_front();
    context_->signal(*impl_);
    return true;
  });
  if (!status.ok()) return status.error();
  return event;
}

Result<int> CompletionQueue::wait_fd() {
  return context_->in_call([&](Call &) { return context_->watch(impl_); });
}

}  // namespace nnti
