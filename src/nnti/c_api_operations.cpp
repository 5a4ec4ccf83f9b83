// SPDX-License-Identifier: BSD-3-Clause
// An open transport of the C interface: its buffers, the operations started here, the messages that arrive.
#include "nnti/c_api_transport.hpp"

#include <base/log.hpp>

#include <algorithm>

namespace nnti::c_api {

namespace {

constexpr std::size_t kMaxEvents = 65536;  // of one buffer, made by peers' puts and gets
constexpr std::size_t kMaxDescriptions = 4096;

bool receives_messages(NNTI_buf_ops_t ops) {
  return (ops & NNTI_BOP_RECV_QUEUE) != 0 || (ops & NNTI_RECV_DST) == NNTI_RECV_DST;
}

bool is_queue(const NNTI_buffer_t &buffer) { return (buffer.ops & NNTI_BOP_RECV_QUEUE) != 0; }

/// Bytes of the buffer; 0 if the handle says what cannot be.
std::uint64_t total_bytes(const NNTI_buffer_t &buffer) {
  std::uint64_t size = 0;
  return __builtin_mul_overflow(buffer.payload_size, buffer.num_elements, &size) ? 0 : size;
}

std::uint64_t largest_message(const NNTI_buffer_t &buffer) {
  return is_queue(buffer) ? buffer.payload_size : total_bytes(buffer);
}

bool inside(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

NNTI_result_t received_result(std::uint64_t value) {
  const bool known = value == NNTI_OK || (value >= NNTI_EIO && value <= NNTI_EPEERLOST);
  return known ? static_cast<NNTI_result_t>(value) : NNTI_EDECODE;
}

Outcome check_ops(NNTI_buf_ops_t ops) {
  constexpr NNTI_buf_ops_t kPurposes =
      NNTI_BOP_LOCAL_READ | NNTI_BOP_REMOTE_READ | NNTI_BOP_LOCAL_WRITE | NNTI_BOP_REMOTE_WRITE;
  if (ops & NNTI_BOP_ATOMICS) return {NNTI_ENOTSUP, "atomic operations are not supported"};
  if (ops & ~(kPurposes | NNTI_BOP_WITH_EVENTS | NNTI_BOP_QUEUING | NNTI_BOP_RECV_QUEUE))
    return {NNTI_EINVAL, "ops has bits that are not defined"};
  if ((ops & (kPurposes | NNTI_BOP_RECV_QUEUE)) == 0) return {NNTI_EINVAL, "ops names no purpose"};
  if ((ops & NNTI_BOP_RECV_QUEUE) && (ops & kPurposes))
    return {NNTI_EINVAL, "a receive queue cannot have other purposes"};
  return {};
}

}  // namespace

// --- buffers ----------------------------------------------------------------------------------------------------------

Registration *CTransport::find_buffer(std::uint64_t id) {
  auto found = buffers_.find(id);
  return found == buffers_.end() ? nullptr : &found->second;
}

Outcome CTransport::register_memory(char *buffer, std::uint64_t element_size, std::uint64_t elements,
                                    NNTI_buf_ops_t ops, const NNTI_peer_t *peer, NNTI_buffer_t *handle) {
  Registration made;
  made.handle.payload_size = element_size;
  made.handle.num_elements = elements;
  const std::uint64_t size = total_bytes(made.handle);
  if (size == 0 || size > UINT64_MAX / 2) return {NNTI_EINVAL, "the size is 0, or larger than memory"};
  if (auto outcome = check_ops(ops); !outcome.ok()) return outcome;
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  const auto peer_id = peer ? find_instance(peer->peer.instance) : std::nullopt;
  if (peer && !peer_id) return {NNTI_ENOENT, "the peer is not connected"};

  made.handle.datatype = NNTI_dt_buffer;
  made.handle.transport_id = id_;
  made.handle.buffer_owner = me_;
  made.handle.ops = ops;
  made.handle.payload = reinterpret_cast<std::uintptr_t>(buffer);
  made.only_for = peer ? peer->peer.instance : 0;
  if (rights_of(ops) != Rights::kNone) {
    auto memory = endpoint_->register_memory(made.bytes(), rights_of(ops));
    if (!memory.ok()) return memory.error();
    made.memory = std::move(*memory);
  }
  if (peer_id && made.memory) {
    auto remote = made.memory->describe_for(*peer_id);
    if (!remote.ok()) return remote.error();
    made.handle.buffer_addr = buffer_to_c(*remote, me_).buffer_addr;
    made.handle.buffer_addr.described_for = made.only_for;
  }
  const std::uint64_t id = nessie::random_u64() | 1;
  made.handle.buffer_addr.id = id;
  if (receives_messages(ops)) made.inbox.emplace(is_queue(made.handle) ? elements : 1);
  if (is_queue(made.handle) && receive_queue_ == 0) receive_queue_ = id;
  *handle = made.handle;
  buffers_.emplace(id, std::move(made));
  return {};
}

Outcome CTransport::unregister_memory(std::uint64_t id) {
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  Registration *buffer = find_buffer(id);
  if (buffer == nullptr) return {NNTI_ENOENT, "the buffer is not registered"};
  if (buffer->in_progress > 0) return {NNTI_EAGAIN, "operations on the buffer are in progress; wait for them first"};
  if (receive_queue_ == id) receive_queue_ = 0;
  buffers_.erase(id);
  turned_.notify_all();
  return {};
}

// --- operations started here ------------------------------------------------------------------------------------------

CTransport::Operation &CTransport::new_operation(Operation::Kind kind, PeerId peer, Registration &local) {
  auto operation = std::make_unique<Operation>();
  operation->owner = this;
  operation->id = next_operation_++;
  operation->kind = kind;
  operation->peer = peer;
  operation->local = local.handle.buffer_addr.id;
  ++local.in_progress;
  return *operations_.emplace(operation->id, std::move(operation)).first->second;
}

Outcome CTransport::send(std::uint64_t peer_instance, std::uint64_t message_id, const NNTI_buffer_t *destination) {
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  Registration *message = find_buffer(message_id);
  if (message == nullptr) return {NNTI_ENOENT, "the message is not in a registered buffer"};
  if (!(message->handle.ops & NNTI_BOP_LOCAL_READ))
    return {NNTI_EPERM, "the message's buffer is not registered as NNTI_SEND_SRC"};
  const auto peer = find_instance(peer_instance);
  if (!peer) return {NNTI_EPEERLOST, "the peer is not connected"};
  if (destination) {
    if (destination->buffer_owner.peer.instance != peer_instance)
      return {NNTI_EINVAL, "the destination belongs to another peer"};
    if (!receives_messages(destination->ops)) return {NNTI_EPERM, "the destination receives no messages"};
    if (message->size_bytes() > largest_message(*destination))
      return {NNTI_EMSGSIZE, "the message is larger than the destination"};
  }
  Operation &operation = new_operation(Operation::Kind::kSend, *peer, *message);
  operation.length = message->size_bytes();
  operation.remote = destination ? destination->buffer_addr.id : 0;
  const bool small = sizeof(Control) + operation.length <= endpoint_->max_message_bytes(*peer);
  Outcome outcome = small ? send_small(operation, Kind::kSend) : send_large(operation);
  if (!outcome.ok()) {
    --message->in_progress;
    operations_.erase(operation.id);
  }
  settle();
  return outcome;
}

Outcome CTransport::send_small(Operation &operation, Kind kind) {
  Control control;
  control.operation = operation.id;
  control.buffer = operation.remote;
  control.length = operation.length;
  const auto payload = find_buffer(operation.local)->bytes();
  if (kind == Kind::kResend) {
    say_surely(operation.peer, kind, control, payload);
    return {};
  }
  auto status = say(operation.peer, kind, control, payload);
  return status.ok() ? Outcome() : Outcome(status.error());
}

/// The peer fetches the message when it has room, and says when it has it.
Outcome CTransport::send_large(Operation &operation) {
  auto exposed = endpoint_->register_memory(find_buffer(operation.local)->bytes(), Rights::kRemoteRead);
  if (!exposed.ok()) return exposed.error();
  auto remote = exposed->describe_for(operation.peer);
  if (!remote.ok()) return remote.error();
  operation.exposed = std::move(*exposed);
  Control control;
  control.operation = operation.id;
  control.buffer = operation.remote;
  control.length = operation.length;
  control.remote = *remote;
  auto status = say(operation.peer, Kind::kSendLarge, control);
  return status.ok() ? Outcome() : Outcome(status.error());
}

Outcome CTransport::access(Direction direction, std::uint64_t local_id, std::uint64_t local_offset,
                           std::uint64_t length, const NNTI_buffer_t &remote, std::uint64_t remote_offset) {
  const bool put = direction == Direction::kPut;
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  Registration *local = find_buffer(local_id);
  if (local == nullptr) return {NNTI_ENOENT, "our buffer is not registered"};
  if (!(local->handle.ops & (put ? NNTI_BOP_LOCAL_READ : NNTI_BOP_LOCAL_WRITE)))
    return {NNTI_EPERM,
            put ? "our buffer is not registered as NNTI_PUT_SRC" : "our buffer is not registered as NNTI_GET_DST"};
  if (!(remote.ops & (put ? NNTI_BOP_REMOTE_WRITE : NNTI_BOP_REMOTE_READ)))
    return {NNTI_EPERM, put ? "the peer's buffer is not registered as NNTI_PUT_DST"
                            : "the peer's buffer is not registered as NNTI_GET_SRC"};
  if (!inside(local_offset, length, local->size_bytes()))
    return {NNTI_EINVAL, "offset and length are outside of our buffer"};
  if (!inside(remote_offset, length, total_bytes(remote)))
    return {NNTI_EINVAL, "offset and length are outside of the peer's buffer"};
  const auto peer = find_instance(remote.buffer_owner.peer.instance);
  if (!peer) return {NNTI_EPEERLOST, "the owner of the peer's buffer is not connected"};

  Operation &operation = new_operation(put ? Operation::Kind::kPut : Operation::Kind::kGet, *peer, *local);
  operation.local_offset = local_offset;
  operation.length = length;
  operation.remote = remote.buffer_addr.id;
  operation.remote_offset = remote_offset;
  operation.tell_target = (remote.ops & NNTI_BOP_WITH_EVENTS) != 0;
  const auto cached = descriptions_.find({peer->value, operation.remote});
  Outcome outcome;
  if (remote.buffer_addr.described_for == instance())
    outcome = start_access(operation, buffer_from_c(remote));
  else if (cached != descriptions_.end())
    outcome = start_access(operation, cached->second);
  else
    outcome = ask_description(operation);
  if (!outcome.ok()) {
    --local->in_progress;
    operations_.erase(operation.id);
  }
  settle();
  return outcome;
}

Outcome CTransport::start_access(Operation &operation, const RemoteBuffer &remote) {
  const auto memory = find_buffer(operation.local)->bytes().subspan(operation.local_offset, operation.length);
  operation.posted = true;
  if (operation.kind == Operation::Kind::kPut)
    endpoint_->put(operation.peer, remote, operation.remote_offset, memory, operation);
  else
    endpoint_->get(operation.peer, remote, operation.remote_offset, memory, operation);
  return {};
}

Outcome CTransport::ask_description(Operation &operation) {
  auto &waiting = asked_[{operation.peer.value, operation.remote}];
  if (waiting.empty()) {
    Control control;
    control.buffer = operation.remote;
    auto status = say(operation.peer, Kind::kDescribe, control);
    if (!status.ok()) {
      asked_.erase({operation.peer.value, operation.remote});
      return status.error();
    }
  }
  waiting.push_back(operation.id);
  return {};
}

void CTransport::on_described(PeerId from, const Control &control) {
  auto asked = asked_.extract({from.value, control.buffer});
  if (asked.empty()) return;
  const auto result = received_result(control.result);
  if (result == NNTI_OK) {
    if (descriptions_.size() >= kMaxDescriptions) descriptions_.clear();
    descriptions_[{from.value, control.buffer}] = control.remote;
  }
  for (const auto id : asked.mapped()) {
    auto operation = operations_.find(id);
    if (operation == operations_.end()) continue;
    if (result == NNTI_OK)
      start_access(*operation->second, control.remote);
    else
      finish(id, result);
  }
}

void CTransport::finish(std::uint64_t id, NNTI_result_t result) {
  auto node = operations_.extract(id);
  if (node.empty()) return;
  Operation &operation = *node.mapped();
  Registration *local = find_buffer(operation.local);
  if (local == nullptr) return;
  --local->in_progress;
  const Peer *peer = find_peer(operation.peer);
  if (operation.kind == Operation::Kind::kFetch) {
    Arrival arrival = *local->inbox->entering();
    if (result == NNTI_OK) return delivered(*local, arrival);
    local->inbox->gave_up();
    answer_send(operation.peer, arrival.operation, result);
    return pump(*local);
  }
  const bool got = operation.kind == Operation::Kind::kGet;
  add_event(*local, {got ? NNTI_GET_DST : NNTI_PUT_SRC, result, operation.local_offset, operation.length,
                     peer ? peer->handle : nullptr, !got, std::nullopt});
  if (!operation.tell_target || result != NNTI_OK) return;
  Control control;
  control.buffer = operation.remote;
  control.offset = operation.remote_offset;
  control.length = operation.length;
  say_surely(operation.peer, got ? Kind::kGot : Kind::kPut, control);
}

/// Ends what the endpoint does not know of; it ends the rest itself.
void CTransport::fail_operations_with(PeerId peer, NNTI_result_t result) {
  std::vector<std::uint64_t> ids;
  for (const auto &[id, operation] : operations_)
    if (operation->peer == peer && !operation->posted) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const auto id : ids) finish(id, result);
}

// --- what peers say ---------------------------------------------------------------------------------------------------

void CTransport::on_message(PeerId from, std::span<const std::byte> message) {
  const auto control = parse(message);
  if (!control) return reject(from, "it sends what cannot be decoded");
  const auto payload = message.subspan(sizeof(Control));
  if (control->kind == Kind::kHello) return on_hello(from, *control, payload);
  const Peer *peer = find_peer(from);
  if (peer == nullptr || peer->instance == 0) return reject(from, "it did not greet");
  switch (control->kind) {
    case Kind::kSend:
    case Kind::kSendLarge: return on_send(from, *control, payload);
    case Kind::kResend: return on_resend(from, *control, payload);
    case Kind::kClear: return on_clear(from, *control);
    case Kind::kSent: return on_sent(from, *control);
    case Kind::kDescribe: return on_describe(from, *control);
    case Kind::kDescribed: return on_described(from, *control);
    case Kind::kPut:
    case Kind::kGot: return on_accessed(from, *control);
    case Kind::kHello: return;
  }
}

void CTransport::on_clear(PeerId from, const Control &control) {
  auto found = operations_.find(control.operation);
  if (found == operations_.end()) return;
  Operation &operation = *found->second;
  const bool small = operation.kind == Operation::Kind::kSend && !operation.exposed;
  if (operation.peer == from && small) send_small(operation, Kind::kResend);
}

void CTransport::on_sent(PeerId from, const Control &control) {
  auto found = operations_.find(control.operation);
  if (found == operations_.end()) return;
  if (found->second->peer == from && found->second->kind == Operation::Kind::kSend)
    finish(control.operation, received_result(control.result));
}

void CTransport::on_describe(PeerId from, const Control &control) {
  Control answer;
  answer.buffer = control.buffer;
  const Registration *buffer = find_buffer(control.buffer);
  if (buffer == nullptr || !buffer->memory)
    answer.result = NNTI_ENOENT;
  else if (buffer->only_for != 0 && buffer->only_for != find_peer(from)->instance)
    answer.result = NNTI_EPERM;
  else if (auto remote = buffer->memory->describe_for(from); remote.ok())
    answer.remote = *remote;
  else
    answer.result = result_of(remote.code());
  say_surely(from, Kind::kDescribed, answer);
}

void CTransport::on_accessed(PeerId from, const Control &control) {
  const bool put = control.kind == Kind::kPut;
  Registration *buffer = find_buffer(control.buffer);
  if (buffer == nullptr || !(buffer->handle.ops & NNTI_BOP_WITH_EVENTS)) return;
  if (!(buffer->handle.ops & (put ? NNTI_BOP_REMOTE_WRITE : NNTI_BOP_REMOTE_READ))) return;
  if (!inside(control.offset, control.length, buffer->size_bytes())) return;
  if (buffer->events.size() >= kMaxEvents) return reject(from, "it makes more events than anybody takes");
  add_event(*buffer, {put ? NNTI_PUT_DST : NNTI_GET_SRC, NNTI_OK, control.offset, control.length,
                      find_peer(from)->handle, !put, std::nullopt});
}

// --- messages that arrive ---------------------------------------------------------------------------------------------

NNTI_result_t CTransport::check_arrival(Registration *target, PeerId from, std::uint64_t length) {
  if (target == nullptr) return NNTI_ENOENT;
  if (!target->inbox) return NNTI_EPERM;
  if (target->only_for != 0 && target->only_for != find_peer(from)->instance) return NNTI_EPERM;
  if (length > largest_message(target->handle)) return NNTI_EMSGSIZE;
  return NNTI_OK;
}

void CTransport::answer_send(PeerId to, std::uint64_t operation, NNTI_result_t result) {
  Control control;
  control.operation = operation;
  control.result = result;
  say_surely(to, Kind::kSent, control);
}

void CTransport::on_send(PeerId from, const Control &control, std::span<const std::byte> payload) {
  Registration *target = find_buffer(control.buffer == 0 ? receive_queue_ : control.buffer);
  const auto result = check_arrival(target, from, control.length);
  if (result != NNTI_OK) return answer_send(from, control.operation, result);
  const Arrival arrival{from, control.operation, control.length, control.kind == Kind::kSendLarge, control.remote};
  if (!target->inbox->open()) {
    if (!target->inbox->park(arrival)) answer_send(from, control.operation, NNTI_EAGAIN);
    return;
  }
  target->inbox->enter(arrival);
  if (arrival.large)
    fetch(*target, arrival);
  else
    deliver(*target, arrival, payload);
}

void CTransport::on_resend(PeerId from, const Control &control, std::span<const std::byte> payload) {
  Registration *target = find_buffer(control.buffer == 0 ? receive_queue_ : control.buffer);
  if (target == nullptr || !target->inbox) return answer_send(from, control.operation, NNTI_ENOENT);
  const auto &entering = target->inbox->entering();
  const bool expected = entering && !entering->large && entering->from == from &&
                        entering->operation == control.operation && entering->length == control.length;
  if (!expected) return;
  deliver(*target, Arrival(*entering), payload);
  pump(*target);
}

void CTransport::deliver(Registration &target, const Arrival &arrival, std::span<const std::byte> payload) {
  const std::uint64_t offset = target.inbox->element() * (is_queue(target.handle) ? target.handle.payload_size : 0);
  if (!payload.empty()) std::memcpy(target.bytes().data() + offset, payload.data(), payload.size());
  delivered(target, arrival);
}

/// The message is in its element.
void CTransport::delivered(Registration &target, const Arrival &arrival) {
  const std::size_t element = target.inbox->entered();
  const bool queue = is_queue(target.handle);
  const Peer *peer = find_peer(arrival.from);
  add_event(target, {queue ? NNTI_RECV_QUEUE : NNTI_RECV_DST, NNTI_OK, queue ? element * target.handle.payload_size : 0,
                     arrival.length, peer ? peer->handle : nullptr, false, element});
  answer_send(arrival.from, arrival.operation, NNTI_OK);
  pump(target);
}

void CTransport::fetch(Registration &target, const Arrival &arrival) {
  const std::uint64_t offset = target.inbox->element() * (is_queue(target.handle) ? target.handle.payload_size : 0);
  Operation &operation = new_operation(Operation::Kind::kFetch, arrival.from, target);
  operation.posted = true;
  operation.local_offset = offset;
  operation.length = arrival.length;
  endpoint_->get(arrival.from, arrival.source, 0, target.bytes().subspan(offset, arrival.length), operation);
}

/// Lets the next parked message in, if there is room.
void CTransport::pump(Registration &target) {
  const auto arrival = target.inbox->next();
  if (!arrival) return;
  if (arrival->large) return fetch(target, *arrival);
  Control control;
  control.operation = arrival->operation;
  say_surely(arrival->from, Kind::kClear, control);
}

// --- completions ------------------------------------------------------------------------------------------------------

void CTransport::add_event(Registration &target, Event event) { target.events.push_back(std::move(event)); }

namespace {

auto find_event(Registration &buffer, NNTI_buf_ops_t ops) {
  const NNTI_buf_ops_t wanted = ops & ~NNTI_BOP_WITH_EVENTS;
  return std::find_if(buffer.events.begin(), buffer.events.end(),
                      [=](const Event &event) { return ops == 0 || (event.op & wanted) != 0; });
}

NNTI_status_t take_event(Registration &buffer, std::deque<Event>::iterator event, const NNTI_peer_t &me) {
  NNTI_status_t status{};
  status.datatype = NNTI_dt_status;
  status.op = event->op;
  status.result = event->result;
  status.start = buffer.handle.payload;
  status.offset = event->offset;
  status.length = event->length;
  const NNTI_peer_t other = event->peer ? *event->peer : peer_to_c({}, {});
  status.src = event->outward ? me : other;
  status.dest = event->outward ? other : me;
  if (event->element) buffer.inbox->taken(*event->element);
  buffer.events.erase(event);
  return status;
}

}  // namespace

std::optional<Outcome> CTransport::take(Want want, const std::vector<std::uint64_t> &ids, NNTI_buf_ops_t ops,
                                        std::vector<std::pair<std::size_t, NNTI_status_t>> &taken) {
  std::vector<std::size_t> complete;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Registration *buffer = find_buffer(ids[i]);
    if (buffer == nullptr) return Outcome(NNTI_ECANCELED, "the buffer was unregistered meanwhile");
    if (find_event(*buffer, ops) != buffer->events.end()) complete.push_back(i);
  }
  if (complete.empty() || (want == Want::kAll && complete.size() < ids.size())) return std::nullopt;
  if (want == Want::kAny) complete.erase(complete.begin() + 1, complete.end());
  Outcome outcome;
  for (const auto i : complete) {
    Registration &buffer = *find_buffer(ids[i]);
    taken.emplace_back(i, take_event(buffer, find_event(buffer, ops), me_));
    const auto result = taken.back().second.result;
    if (outcome.ok() && result != NNTI_OK)
      outcome = {result, "the operation failed: " + std::string(nnti_err_str(result))};
  }
  return outcome;
}

Outcome CTransport::wait(Want want, const std::vector<std::uint64_t> &ids, NNTI_buf_ops_t ops, int timeout_ms,
                         std::vector<std::pair<std::size_t, NNTI_status_t>> &taken) {
  const auto deadline = Deadline::from_ms(timeout_ms);
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  for (const auto id : ids) {
    const Registration *buffer = find_buffer(id);
    if (buffer == nullptr) return {NNTI_ENOENT, "the buffer is not registered"};
    if (ops != 0 && (buffer->handle.ops & ops & ~NNTI_BOP_WITH_EVENTS) == 0)
      return {NNTI_EINVAL, "the buffer is not registered for the purpose that is waited for"};
  }
  for (const auto id : ids) {
    Registration &buffer = *find_buffer(id);
    if (buffer.inbox && buffer.inbox->release_mine()) pump(buffer);
  }
  settle();
  return wait_until(guard, deadline, [&] { return take(want, ids, ops, taken); });
}

}  // namespace nnti::c_api
