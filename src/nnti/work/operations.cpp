// SPDX-License-Identifier: BSD-3-Clause
// The operations of a context: their life from start to completion; sending messages.
#include "nnti/work/context_impl.hpp"

#include <algorithm>
#include <atomic>

namespace nnti {

using Operation = Context::Impl::Operation;

void Operation::on_complete(Status status) { part_ended(status.code()); }

void Operation::part_ended(Code how) {
  if (code == Code::kOk) code = how;
  if (--parts == 0) owner->finished.push_back(id);
}

void Operation::reset() {
  kind = Kind::kSend;
  request = group = remote = previous = 0;
  local_offset = length = remote_offset = 0;
  code = Code::kOk;
  parts = 0;
  asked_again = from_cache = cancelled = withdrawing = false;
  large = sample = writing = false;
  written = range = transfer = 0;
  exposed.clear();
  gathered = {};
  description.reset();
}

Operation &Context::Impl::new_operation(Operation::Kind kind, PeerId peer, Registration &local) {
  Operation &operation = operations.make();
  operation.owner = this;
  operation.kind = kind;
  operation.peer = peer;
  operation.local = local.handle.id;
  ++local.in_progress;
  return operation;
}

/// Makes the request of an operation that has `started`; forgets one that could not.
Status Context::Impl::launch(Operation &operation, Status started, RequestId *request) {
  if (!started.ok()) {
    drop(operation);
    return started;
  }
  if (request == nullptr) return {};
  Request &made = requests.make();
  made.state = Request::State::kPending;
  made.buffer = {operation.local};
  made.operation = operation.id;
  operation.request = made.id;
  *request = {made.id};
  return {};
}

void Context::Impl::drop(Operation &operation) {
  if (auto *local = find_buffer(operation.local)) --local->in_progress;
  operations.erase(operation);
}

/// All parts of the operation have ended.
void Context::Impl::finish(Operation &operation, Code code) {
  if (operation.kind == Operation::Kind::kFetch) {
    Registration &target = *find_buffer(operation.local);
    drop(operation);
    return fetched(target, code);
  }
  if (operation.kind == Operation::Kind::kSend) return range_written(operation, code);
  if (code == Code::kRefused && ask_again(operation)) return;
  complete(operation, code);
}

namespace {

void store_previous(const Context::Impl::Registration &local, const Operation &operation) {
  for_each_piece(local.segments, operation.local_offset, sizeof operation.previous, [&](Bytes word) {
    std::atomic_ref(*reinterpret_cast<std::uint64_t *>(word.data())).store(operation.previous);
  });
}

Event event_of(const Operation &operation, Code code, std::shared_ptr<const PeerInfo> peer) {
  const bool inward = operation.kind == Operation::Kind::kGet || operation.kind == Operation::Kind::kAtomic;
  Event event;
  event.purpose = inward ? Purpose::kLocalWrite : Purpose::kLocalRead;
  event.code = code;
  event.buffer = {operation.local};
  event.request = {operation.request};
  event.offset = operation.local_offset;
  event.length = operation.length;
  event.peer = std::move(peer);
  event.outward = !inward;
  return event;
}

}  // namespace

/// The end of an operation: its completion goes where it is waited for.
void Context::Impl::complete(Operation &operation, Code code) {
  Registration *local = find_buffer(operation.local);
  if (operation.kind == Operation::Kind::kAtomic && code == Code::kOk && local) store_previous(*local, operation);
  if (code == Code::kOk) tell_target(operation);
  if (operation.group != 0) {
    auto *group = operations.find(operation.group);
    drop(operation);
    if (group) group->part_ended(code);
    return;
  }
  const bool sample = operation.sample;
  const bool worth_measuring = operation.large && !sample && operation.length >= RendezvousTimes::kSizes[0];
  const PeerId peer = operation.peer;
  auto event = event_of(operation, code, info_of(peer));
  drop(operation);
  if (sample) return on_sample(code);
  if (worth_measuring && code == Code::kOk) begin_measuring(peer);
  dirty = true;
  if (event.request.value == 0) {
    if (local) add_event(*local, std::move(event));
    return;
  }
  Request *request = requests.find(event.request.value);
  if (request == nullptr) return;  // destroyed meanwhile: nobody wants to know
  request->state = Request::State::kReady;
  request->event = std::move(event);
  if (!request->queue) return;
  to_queue(request->queue, std::move(request->event));
  requests.erase(*request);
}

/// Ends what the endpoint does not know of; it ends the rest itself.
void Context::Impl::fail_operations_with(PeerId peer, Code code) {
  std::vector<std::uint64_t> ids;
  operations.for_each([&](Operation &operation) {
    if (operation.peer != peer || operation.kind == Operation::Kind::kGroup) return;
    const bool awaits_writing = operation.kind == Operation::Kind::kFetch && operation.writing;
    if (awaits_writing && std::exchange(operation.writing, false)) operation.part_ended(code);
    if (operation.parts == 0 && operation.kind != Operation::Kind::kFetch) ids.push_back(operation.id);
  });
  for (const auto id : ids)
    if (auto *operation = operations.find(id)) complete(*operation, code);
}

void Context::Impl::tell_target(Operation &operation) {
  const bool known = operation.description != nullptr;
  if (!known || !has(operation.description->purposes, Purpose::kWithEvents)) return;
  wire::Control control{.buffer = operation.remote, .offset = operation.remote_offset, .length = operation.length};
  Purpose purpose = Purpose::kAtomics;
  if (operation.kind == Operation::Kind::kPut) purpose = Purpose::kRemoteWrite;
  if (operation.kind == Operation::Kind::kGet) purpose = Purpose::kRemoteRead;
  control.operation = static_cast<std::uint64_t>(purpose);
  say_surely(operation.peer, wire::Kind::kAccessed, control);
}

// --- sending ----------------------------------------------------------------------------------------------------------

namespace {

Status check_destination(const BufferHandle &destination, ProcessId to, std::uint64_t size) {
  if (destination.owner != to) return Error{Code::kInvalidArgument, "the destination belongs to another peer"};
  if (!destination.receives_messages()) return Error{Code::kRefused, "the destination receives no messages"};
  if (size > destination.largest_message()) return Error{Code::kTooLarge, "the message is larger than the destination"};
  return {};
}

}  // namespace

Status Context::Impl::send(ProcessId to, BufferId message_id, const BufferHandle *destination, RequestId *request) {
  auto found = own_buffer(message_id);
  if (!found.ok()) return found.error();
  Registration &message = **found;
  if (!any(message.handle.purposes & Purpose::kLocalRead))
    return Error{Code::kRefused, "the message's buffer is not registered as a source of messages (SEND_SRC)"};
  const auto peer = connection_to(to);
  if (!peer) return Error{Code::kPeerLost, "the peer is not connected", nessie::Scope::kPeer};
  const std::uint64_t size = message.handle.size_bytes();
  if (destination)
    if (auto status = check_destination(*destination, to, size); !status.ok()) return status;
  Operation &operation = new_operation(Operation::Kind::kSend, *peer, message);
  operation.length = size;
  operation.remote = destination ? destination->id : 0;
  const bool small = size <= eager_max && sizeof(wire::Control) + size <= endpoint->max_message_bytes(*peer);
  return launch(operation,
                small ? send_small(operation, message, wire::Kind::kSend)
                      : send_large(operation, message, rendezvous_in_force(*peer)),
                request);
}

Status Context::Impl::send_small(Operation &operation, const Registration &message, wire::Kind kind) {
  return say_segments(operation.peer, kind,
                      {.operation = operation.id, .buffer = operation.remote, .length = operation.length}, message);
}

/// The receiver has room for a message that waited here.
void Context::Impl::on_clear(PeerId from, const wire::Control &control) {
  Operation *operation = operations.find(control.operation);
  if (operation == nullptr || operation->peer != from || operation->kind != Operation::Kind::kSend) return;
  if (operation->large) return;
  const Registration &message = *find_buffer(operation->local);
  if (outbox.empty() && send_small(*operation, message, wire::Kind::kResend).code() != Code::kBusy) return;
  std::vector<std::byte> bytes;
  for (const auto &segment : message.segments) bytes.insert(bytes.end(), segment.begin(), segment.end());
  say_surely(from, wire::Kind::kResend,
             {.operation = operation->id, .buffer = operation->remote, .length = operation->length}, bytes);
}

void Context::Impl::on_sent(PeerId from, const wire::Control &control) {
  Operation *operation = operations.find(control.operation);
  if (operation == nullptr || operation->peer != from || operation->kind != Operation::Kind::kSend) return;
  if (operation->writing) return reject(from, "it says that a message has arrived that is being written");
  complete(*operation, received_code(control.result));
}

/// Asks the receiver to drop a message that waits there. It answers with kSent in any case.
void Context::Impl::withdraw(Operation &operation) {
  if (std::exchange(operation.withdrawing, true)) return;
  say_surely(operation.peer, wire::Kind::kWithdraw, {.operation = operation.id, .buffer = operation.remote});
}

}  // namespace nnti
