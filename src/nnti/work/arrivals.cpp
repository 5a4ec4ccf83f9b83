// SPDX-License-Identifier: BSD-3-Clause
// Messages that arrive at a context's buffers.
#include "nnti/work/context_impl.hpp"

namespace nnti {

Code Context::Impl::check_arrival(const Registration *target, PeerId from, std::uint64_t length) {
  if (target == nullptr) return Code::kNotFound;
  if (!target->inbox) return Code::kRefused;
  if (target->only_for.value != 0 && target->only_for != find_peer(from)->info->process) return Code::kRefused;
  return length > target->handle.largest_message() ? Code::kTooLarge : Code::kOk;
}

void Context::Impl::answer_send(PeerId to, std::uint64_t operation, Code code) {
  say_surely(to, wire::Kind::kSent, {.operation = operation, .result = static_cast<std::uint64_t>(code)});
}

void Context::Impl::on_send(PeerId from, const wire::Control &control, std::span<const std::byte> payload) {
  if (control.buffer == kScratch)
    if (const Code code = lend_scratch(from); code != Code::kOk) return answer_send(from, control.operation, code);
  Registration *target = find_buffer(control.buffer == 0 ? receive_queue : control.buffer);
  const Code code = check_arrival(target, from, control.length);
  if (code != Code::kOk) return answer_send(from, control.operation, code);
  Arrival arrival{from, control.operation, control.length, control.kind == wire::Kind::kSendLarge};
  if (arrival.large) {
    auto source = wire::pieces_of(payload, control.offset);
    if (!source) return answer_send(from, control.operation, Code::kBadMessage);
    arrival.source = std::move(*source);
    arrival.readable = control.offset;
  }
  Inbox &inbox = *target->inbox;
  if (!inbox.open()) {
    if (!inbox.park(std::move(arrival), payload)) answer_send(from, control.operation, Code::kBusy);
    return;
  }
  const bool large = arrival.large;
  inbox.enter(std::move(arrival));
  if (large) return fetch(*target);
  deliver(*target, payload);
  if (control.buffer == kScratch && control.length == 0) take_scratch_back(from);
}

void Context::Impl::on_resend(PeerId from, const wire::Control &control, std::span<const std::byte> payload) {
  Registration *target = find_buffer(control.buffer == 0 ? receive_queue : control.buffer);
  if (target == nullptr || !target->inbox) return answer_send(from, control.operation, Code::kNotFound);
  const auto &entering = target->inbox->entering();
  const bool expected = entering && !entering->large && entering->from == from &&
                        entering->operation == control.operation && entering->length == control.length;
  if (!expected) return;
  deliver(*target, payload);
  pump(*target);
}

void Context::Impl::on_withdraw(PeerId from, const wire::Control &control) {
  Registration *target = find_buffer(control.buffer == 0 ? receive_queue : control.buffer);
  if (target == nullptr || !target->inbox || !target->inbox->withdraw(from, control.operation)) return;
  answer_send(from, control.operation, Code::kCancelled);
  pump(*target);
}

void Context::Impl::deliver(Registration &target, std::span<const std::byte> payload) {
  for_each_piece(target.segments, target.entering_at(), payload.size(), [&](Bytes piece) {
    std::memcpy(piece.data(), payload.data(), piece.size());
    payload = payload.subspan(piece.size());
  });
  delivered(target);
}

/// The entering message is in its element.
void Context::Impl::delivered(Registration &target) {
  if (target.handle.id == kScratch) return forget_sample(target);
  const Arrival &arrival = *target.inbox->entering();
  const PeerId from = arrival.from;
  const std::uint64_t operation = arrival.operation;
  Event event;
  event.purpose =
      any(target.handle.purposes & Purpose::kReceiveQueue) ? Purpose::kReceiveQueue : Purpose::kReceiveDestination;
  event.buffer = {target.handle.id};
  event.offset = target.entering_at();
  event.length = arrival.length;
  event.peer = info_of(from);
  event.element = target.inbox->entered();
  add_event(target, std::move(event));
  answer_send(from, operation, Code::kOk);
}

/// Lets the next parked messages in, as long as there is room.
void Context::Impl::pump(Registration &target) {
  while (target.inbox->let_next_in()) {
    auto &arrival = *target.inbox->entering();
    if (arrival.large) return fetch(target);
    if (!arrival.kept) return say_surely(arrival.from, wire::Kind::kClear, {.operation = arrival.operation});
    const auto bytes = std::move(arrival.bytes);
    deliver(target, bytes);
  }
}

}  // namespace nnti
