// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/answers.hpp>

#include <fmt/format.h>

#include <nssi/drive/core.hpp>
#include <nssi/drive/event.hpp>

#include <algorithm>

namespace nssi {

namespace {

Error given_up() { return {Code::kCancelled, "the caller has given the request up"}; }

}  // namespace

void Answers::refuse(PeerId caller, std::uint64_t id, const Error &error) {
  wire::Result message;
  message.prefix.id = id;
  message.failure = wire::to_failure(error);
  (void)core_.send_message(caller, message);
}

template <class Result>
[[gnu::always_inline]] inline Status Answers::answer(Session &session, Slot &slot, Result message) {
  message.prefix.id = slot.id;
  auto status = core_.send_message(slot.peer, message, slot.answer);
  sessions_.keep(session, slot);
  return status;
}

Status Answers::answer(Session &session, std::uint64_t id, const Error &error) {
  auto *slot = session.find(id);
  if (slot == nullptr) return given_up();
  wire::Result message;
  message.failure = wire::to_failure(error);
  return answer(session, *slot, message);
}

Status Answers::answer(Session &session, std::uint64_t id, const Payload &result, const Offered &offered) {
  auto *slot = session.find(id);
  if (slot == nullptr) return given_up();
  if (!core_.fits(slot->peer, result.size_bytes() + wire::kMaxResultOverhead))
    return answer_long(session, *slot, result, offered);
  offered.result_size.note_short();
  if (!result.is_encoded()) return answer(session, *slot, wire::PlainResult{.result = result.bytes()});
  scratch_.resize(result.size_bytes());
  if (auto written = result.write(scratch_, "result"); !written.ok()) {
    (void)answer(session, id, written.error());
    return written;
  }
  return answer(session, *slot, wire::PlainResult{.result = scratch_});
}

/// Leaves the result registered here until the caller has fetched it. For one that is gone, and may come back over
/// another connection, it lies in a block that serves nobody afterwards.
Status Answers::answer_long(Session &session, Slot &slot, const Payload &result, const Offered &offered) {
  const bool is_here = core_.has_peer(slot.peer);
  auto block = core_.blocks().take(is_here ? slot.peer : PeerId{}, result.size_bytes());
  if (block.ok() && !is_here) block->taint();
  if (!block.ok()) {
    (void)answer(session, slot.id, block.error());
    return block.error();
  }
  Status written;
  {
    const nessie::ReadElsewhere scope(is_here && core_.endpoint().can_view(slot.peer));
    written = result.write(block->bytes(), "result");
  }
  if (!written.ok()) {
    (void)answer(session, slot.id, written.error());
    return written;
  }
  slot.long_result = *std::move(block);
  offered.result_size.note(result.size_bytes());
  slot.charge = offered.admission->charge(session, result.size_bytes());
  sessions_.keep(session, slot);
  return offer_long_result(slot);
}

Status Answers::offer_long_result(Slot &slot) {
  auto remote = slot.long_result->describe_for(slot.peer);
  if (!remote.ok()) {
    refuse(slot.peer, slot.id, remote.error());
    return remote.error();
  }
  wire::Result message;
  message.prefix.id = slot.id;
  message.long_result = wire::Buffer{*remote};
  return core_.send_message(slot.peer, message);
}

bool Answers::await_room(Session &session, const Offered &offered, std::uint64_t size_bytes, EventState &room) {
  const Awaiting one{&session, offered.admission, size_bytes, &room};
  if (one.has_room(0)) return false;
  awaiting_.push_back(one);
  core_.ask_for_turn();
  return true;
}

void Answers::await_no_more(const EventState &room) {
  std::erase_if(awaiting_, [&](const Awaiting &each) { return each.room == &room; });
}

/// Wakes those for whom there is room. Each takes it when its fiber runs: until then it counts as promised.
void Answers::give_room() {
  std::uint64_t promised = 0;
  std::erase_if(awaiting_, [&](const Awaiting &each) {
    if (!each.has_room(promised)) return false;
    promised += each.size_bytes;
    each.room->set = true;
    each.room->wake_all();
    return true;
  });
  if (!awaiting_.empty()) core_.ask_for_turn();
}

}  // namespace nssi
