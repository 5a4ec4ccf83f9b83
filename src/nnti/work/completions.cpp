// SPDX-License-Identifier: BSD-3-Clause
// Completions of a context: events, work requests, waiting.
#include "nnti/work/context_impl.hpp"

#include <algorithm>
#include <array>

namespace nnti {

namespace {

using Request = Context::Impl::Request;

/// What peers did, which requests of buffers wait for; not the ends of our own operations.
constexpr Purpose kByPeers = Purpose::kRemoteRead | Purpose::kRemoteWrite | Purpose::kReceiveQueue | Purpose::kAtomics;

auto find_event(std::deque<Event> &events, Purpose purposes) {
  const Purpose wanted = purposes & static_cast<Purpose>(~static_cast<std::uint32_t>(Purpose::kWithEvents));
  return std::find_if(events.begin(), events.end(),
                      [=](const Event &event) { return purposes == Purpose::kNone || any(event.purpose & wanted); });
}

Event pop(std::deque<Event> &events, std::deque<Event>::iterator position) {
  Event event = std::move(*position);
  if (position == events.begin())
    events.pop_front();
  else
    events.erase(position);
  return event;
}

}  // namespace

void Context::Impl::add_event(Registration &buffer, Event event) {
  dirty = true;
  if (buffer.queue) return to_queue(buffer.queue, std::move(event));
  buffer.events.push_back(std::move(event));
  if (!buffer.queued_requests.empty()) feed_requests(buffer);
}

/// Requests of the buffer that are bound to queues take what has come, in the order in which they were bound.
void Context::Impl::feed_requests(Registration &buffer) {
  while (!buffer.queued_requests.empty()) {
    Request *request = requests.find(buffer.queued_requests.front().value);
    const bool waits = request && request->state == Request::State::kIdle && request->queue;
    auto event = find_event(buffer.events, kByPeers);
    if (waits && event == buffer.events.end()) return;
    buffer.queued_requests.pop_front();
    if (!waits) continue;
    request->state = Request::State::kTaken;
    request->event = pop(buffer.events, event);
    request->event.request = {request->id};
    to_queue(request->queue, request->event);
  }
}

/// The reader is done with an element: the next message may come in.
void Context::Impl::release(Registration &buffer, std::uint32_t element) {
  if (buffer.inbox && buffer.inbox->release(element)) pump(buffer);
}

// --- work requests ----------------------------------------------------------------------------------------------------

Result<Request *> Context::Impl::find_request(RequestId id) const {
  if (auto *request = requests.find(id.value)) return request;
  return Error{Code::kNotFound, "there is no such work request (any more); an operation's ends with its completion"};
}

/// The request's event is not wanted any more, or was not taken: then it is the next again.
void Context::Impl::give_back(Request &request) {
  Registration *buffer = find_buffer(request.buffer.value);
  Event event = std::exchange(request.event, {});
  if (buffer == nullptr || event.element == Event::kNoElement) return;
  if (request.state == Request::State::kTaken) return release(*buffer, event.element);
  event.request = {};
  buffer->events.push_front(std::move(event));
  dirty = true;
}

/// What the endpoint has goes on: its memory is lent until it ends.
void Context::Impl::cancel(Operation &operation) {
  operation.cancelled = true;
  if (operation.kind == Operation::Kind::kSend) return withdraw(operation);
  if (operation.kind != Operation::Kind::kGroup) {
    if (operation.parts == 0) complete(operation, Code::kCancelled);
    return;
  }
  std::vector<std::uint64_t> members;
  operations.for_each([&](const Operation &other) {
    if (other.group == operation.id) members.push_back(other.id);
  });
  for (const auto id : members)
    if (auto *member = operations.find(id)) cancel(*member);
}

Status Context::Impl::cancel(Request &request) {
  if (!request.of_buffer) {
    Operation *operation = operations.find(request.operation);
    if (request.state == Request::State::kPending && operation) cancel(*operation);
    return {};
  }
  if (request.state != Request::State::kIdle) return {};
  request.state = Request::State::kReady;
  request.event.code = Code::kCancelled;
  request.event.buffer = request.buffer;
  request.event.request = {request.id};
  dirty = true;
  if (!request.queue) return {};
  request.state = Request::State::kTaken;
  to_queue(request.queue, request.event);
  return {};
}

// --- waiting ----------------------------------------------------------------------------------------------------------

Status Context::Impl::check(BufferId id, Purpose purposes) {
  const Registration *buffer = find_buffer(id.value);
  if (buffer == nullptr) return Error{Code::kNotFound, "the buffer is not registered (any more)"};
  const Purpose wanted = purposes & static_cast<Purpose>(~static_cast<std::uint32_t>(Purpose::kWithEvents));
  if (purposes != Purpose::kNone && !any(buffer->handle.purposes & wanted))
    return Error{Code::kInvalidArgument, "the buffer is not registered for the purpose that is waited for"};
  if (buffer->queue) return Error{Code::kInvalidArgument, "the buffer's completions go to a queue; wait for that"};
  return {};
}

Status Context::Impl::check(RequestId id, Purpose) {
  auto request = find_request(id);
  if (!request.ok()) return request.error();
  if ((*request)->queue)
    return Error{Code::kInvalidArgument, "the request's completion goes to a queue; wait for that"};
  if ((*request)->state == Request::State::kTaken)
    return Error{Code::kInvalidArgument, "the request's completion was taken; clear it to wait again"};
  return {};
}

bool Context::Impl::gone(RequestId id) const {
  const Request *request = requests.find(id.value);
  if (request == nullptr || request->state == Request::State::kTaken) return true;
  return request->state == Request::State::kIdle && !buffers.contains(request->buffer.value);
}

bool Context::Impl::ready(BufferId id, Purpose purposes) {
  auto &events = find_buffer(id.value)->events;
  return find_event(events, purposes) != events.end();
}

/// An event that a request of a buffer finds is the request's from then on.
bool Context::Impl::ready(RequestId id, Purpose) {
  Request &request = *requests.find(id.value);
  if (request.state != Request::State::kIdle) return request.state == Request::State::kReady;
  auto &events = find_buffer(request.buffer.value)->events;
  auto event = find_event(events, kByPeers);
  if (event == events.end()) return false;
  request.event = pop(events, event);
  request.event.request = id;
  request.state = Request::State::kReady;
  return true;
}

Event Context::Impl::take(BufferId id, Purpose purposes) {
  auto &events = find_buffer(id.value)->events;
  return pop(events, find_event(events, purposes));
}

Event Context::Impl::take(RequestId id, Purpose) {
  Request &request = *requests.find(id.value);
  if (request.of_buffer) {
    request.state = Request::State::kTaken;
    return request.event;
  }
  Event event = std::move(request.event);
  requests.erase(request);
  return event;
}

template <class Id> Status Context::Impl::check_list(std::span<const Id> ids, Purpose purposes) {
  if (ids.empty()) return Error{Code::kInvalidArgument, "there is nothing in the list to wait for"};
  for (const auto id : ids)
    if (auto status = check(id, purposes); !status.ok()) return status;
  if (ids.size() == 1) return {};
  std::vector<std::uint64_t> sorted;
  for (const auto id : ids) sorted.push_back(id.value);
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return Error{Code::kInvalidArgument, "the list names one twice"};
  return {};
}

template <class Id>
Result<std::size_t> Context::Impl::wait_any(Call &call, std::span<const Id> ids, Purpose purposes, Deadline deadline,
                                            Event &event) {
  if (auto status = check_list(ids, purposes); !status.ok()) return status.error();
  bool withdrawn = false;
  std::size_t which = 0;
  auto status = wait_until(call, deadline, [&] {
    for (which = 0; which < ids.size(); ++which) {
      withdrawn = gone(ids[which]);
      if (withdrawn) return true;
      if (!ready(ids[which], purposes)) continue;
      event = take(ids[which], purposes);
      return true;
    }
    return false;
  });
  if (!status.ok()) return status.error();
  if (withdrawn) return Error{Code::kCancelled, "what was waited for was withdrawn meanwhile"};
  return which;
}

template <class Id>
Status Context::Impl::wait_all(Call &call, std::span<const Id> ids, Purpose purposes, Deadline deadline,
                               std::span<Event> events) {
  if (events.size() < ids.size()) return Error{Code::kInvalidArgument, "there is not room for all completions"};
  if (auto status = check_list(ids, purposes); !status.ok()) return status.error();
  bool withdrawn = false;
  auto status = wait_until(call, deadline, [&] {
    std::size_t complete = 0;
    for (const auto id : ids) {
      withdrawn = gone(id);
      if (withdrawn) return true;
      complete += ready(id, purposes);
    }
    if (complete < ids.size()) return false;
    for (std::size_t i = 0; i < ids.size(); ++i) events[i] = take(ids[i], purposes);
    return true;
  });
  if (status.ok() && withdrawn) return Error{Code::kCancelled, "what was waited for was withdrawn meanwhile"};
  return status;
}

template Result<std::size_t> Context::Impl::wait_any(Call &, std::span<const BufferId>, Purpose, Deadline, Event &);
template Result<std::size_t> Context::Impl::wait_any(Call &, std::span<const RequestId>, Purpose, Deadline, Event &);
template Status Context::Impl::wait_all(Call &, std::span<const BufferId>, Purpose, Deadline, std::span<Event>);
template Status Context::Impl::wait_all(Call &, std::span<const RequestId>, Purpose, Deadline, std::span<Event>);

}  // namespace nnti
