// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/shared_queue.hpp"

namespace nnti::shm {

Result<Mapping> map_queue(int memfd, std::uint64_t entries) {
  if (!std::has_single_bit(entries) || entries < kMinQueueEntries || entries > kMaxQueueEntries)
    return Error{Code::kBadMessage, "the peer's queue has an impossible size", nessie::Scope::kPeer};
  return map_shared_memory(memfd, queue_bytes(entries), Access::kReadWrite);
}

// --- writing ----------------------------------------------------------------------------------------------------------

Outcome QueueWriter::claim(std::uint64_t &number) {
  auto claimed = try_claim(number);
  if (claimed == Outcome::kSent && !starves_) [[likely]]
    return claimed;
  if (claimed == Outcome::kNoCredit && !starves_) {
    say_starving();
    claimed = try_claim(number);
  }
  if (claimed == Outcome::kSent && starves_) {
    starves_ = false;
    starves_word_->store(0, std::memory_order_relaxed);
  }
  return claimed;
}

/// In this order: the reader takes the queue's word down first, and then looks at everybody's.
void QueueWriter::say_starving() {
  starves_ = true;
  starves_word_->store(1, std::memory_order_seq_cst);
  queue_.control->starving.store(1, std::memory_order_seq_cst);
}

Outcome QueueWriter::try_claim(std::uint64_t &number) {
  if (bound_ == 0 || !has_share()) {
    if (!refresh()) return Outcome::kBroken;
    if (!has_share()) return Outcome::kNoCredit;
  }
  bool asked = false;
  auto candidate = next_;
  // Each turn leaves an entry behind that somebody else has claimed; who would claim on for ever stops us nevertheless.
  for (auto turns = 4 * queue_.entries; turns != 0; --turns) {
    if (candidate - consumed_ >= queue_.entries) {
      if (!refresh()) return Outcome::kBroken;
      if (candidate < consumed_) candidate = find_start();
      if (candidate - consumed_ >= queue_.entries) return Outcome::kNoCredit;
    }
    auto &state = EntryPlace::of(queue_, candidate).state;
    auto found = state.load(std::memory_order_acquire);
    auto round = EntryPlace::round(queue_, candidate);
    if (EntryState::round(found) == round - 1) {
      if (!state.compare_exchange_strong(found, EntryState::make(round, seat_, EntryState::kClaimed),
                                         std::memory_order_acq_rel, std::memory_order_relaxed))
        continue;
      number = candidate;
      note_claim(number);
      return Outcome::kSent;
    }
    if (EntryState::round(found) != round) {  // our guess is a round old, or somebody wrote what cannot be
      auto before = consumed_;
      if (!refresh() || before == consumed_) return Outcome::kBroken;
      candidate = find_start();
      continue;
    }
    candidate = asked ? candidate + 1 : std::max(candidate + 1, find_start());
    asked = true;
  }
  return Outcome::kNoCredit;
}

void QueueWriter::note_claim(std::uint64_t number) {
  next_ = number + 1;
  ++newer_;
}

/// What is under way is counted in two halves: when all of the older one has been consumed, the newer becomes the
/// older.
bool QueueWriter::has_share() {
  if (newer_ < std::max<std::uint64_t>(bound_ / 2, 1)) [[likely]]
    return true;
  if (older_end_ > consumed_) return false;
  older_end_ = next_;
  newer_ = 0;
  return true;
}

/// False: the reader takes back what it had consumed. What it says now is to be acted upon: who sleeps waits for it to
/// say something else.
bool QueueWriter::refresh() {
  auto consumed = queue_.consumed->load(std::memory_order_seq_cst);
  if (consumed < consumed_) return false;
  consumed_ = consumed;
  bound_ = std::min(queue_.bound->load(std::memory_order_relaxed), queue_.entries / 2);
  return true;
}

bool QueueWriter::is_taken(std::uint64_t number) const {
  auto state = EntryPlace::of(queue_, number).state.load(std::memory_order_relaxed);
  return EntryState::round(state) == EntryPlace::round(queue_, number);
}

/// Where to look for a free entry: at the hint, if the entry before it is taken; else at the first that can be free.
std::uint64_t QueueWriter::find_start() const {
  auto hint = queue_.control->tail_hint.load(std::memory_order_relaxed);
  bool sensible = hint > consumed_ && hint - consumed_ <= queue_.entries && is_taken(hint - 1);
  return sensible ? hint : consumed_;
}

// --- reading ----------------------------------------------------------------------------------------------------------

QueueReader::Head QueueReader::look() const {
  auto state = EntryPlace::of(queue_, next_).state.load(std::memory_order_acquire);
  auto round = EntryPlace::round(queue_, next_);
  if (EntryState::round(state) == round - 1) return {Look::kEmpty, 0};
  auto seat = EntryState::seat(state);
  if (EntryState::round(state) != round) return {Look::kBroken, seat};
  switch (EntryState::status(state)) {
    case EntryState::kClaimed: return {Look::kClaimed, seat};
    case EntryState::kPublished: return {Look::kPublished, seat};
    default: return {Look::kBroken, seat};
  }
}

std::optional<Message> QueueReader::read(std::span<std::byte, kMaxInPlaceBytes> buffer) {
  const auto &entry = EntryPlace::of(queue_, next_);
  const auto header = *static_cast<const volatile std::uint64_t *>(&entry.header);  // once: it may change
  auto size = static_cast<std::size_t>(header & 0xffff);
  auto kind = header >> 16 & 0xff, message_kind = header >> 24 & 0xff;
  if (kind == 0 || kind > kLastKind || message_kind > kMaxMessageKind || size > kQueuePayload || header >> 32 != 0)
    return std::nullopt;
  std::memcpy(buffer.data(), entry.payload, size);
  ++next_;
  return Message{static_cast<Kind>(kind), static_cast<MessageKind>(message_kind), size};
}

std::uint64_t QueueReader::end_of(std::uint32_t seat) const {
  for (auto number = next_ + queue_.entries; number != next_; --number) {
    auto state = EntryPlace::of(queue_, number - 1).state.load(std::memory_order_acquire);
    bool holds = EntryState::round(state) == EntryPlace::round(queue_, number - 1) && EntryState::seat(state) == seat;
    if (holds) return number;
  }
  return next_;
}

}  // namespace nnti::shm
