// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/framed/transfers.hpp"

#include "nnti/transport/registration_check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nnti::framed {
namespace {

constexpr std::size_t kMaxServed = 4096;  // of one peer

}  // namespace

Transfers::Transfer *Transfers::find(Name name) {
  Map &map = name.ours ? ours_ : theirs_;
  const auto found = map.find(name.operation);
  return found == map.end() ? nullptr : &found->second;
}

void Transfers::note_if_over(Name name, const Transfer &transfer) {
  if (!transfer.over()) return;
  ended_.push_back(name);
  host_.finish_later();
}

void Transfers::stop(Name name, Transfer &transfer, Code code) {
  if (transfer.in_flight > 0 && host_.recall(transfer.bytes, transfer.outgoing))
    in_flight_ -= std::exchange(transfer.in_flight, 0);
  if (std::exchange(transfer.stopped, true)) return;
  transfer.result = code;
  note_if_over(name, transfer);
}

// --- ours ---------------------------------------------------------------------------------------------------------------

Transfers::Transfer &Transfers::begin(std::span<std::byte> local, Completion &completion) {
  Transfer &transfer = ours_[next_operation_];
  transfer.bytes = local;
  transfer.completion = &completion;
  return transfer;
}

std::uint64_t Transfers::begin_get(std::span<std::byte> local, Completion &completion) {
  begin(local, completion).needs_answer = local.size() <= kMaxInlineBytes;
  return next_operation_++;
}

std::uint64_t Transfers::begin_put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                                   Completion &completion) {
  if (local.size() > kMaxInlineBytes) {
    Transfer &transfer = begin({const_cast<std::byte *>(local.data()), local.size()}, completion);
    transfer.outgoing = true;
    transfer.needs_answer = true;
    transfer.header = {next_operation_, remote.key, offset, local.size(), 0, ChunkType::kPut, 0};
    send({true, next_operation_});
    return next_operation_++;
  }
  return begin_moved({const_cast<std::byte *>(local.data()), local.size()}, completion);
}

std::uint64_t Transfers::begin_moved(std::span<std::byte> local, Completion &completion) {
  Transfer &transfer = begin(local, completion);
  transfer.outgoing = true;
  transfer.next = local.size();
  transfer.needs_answer = true;
  return next_operation_++;
}

bool Transfers::answered(std::uint64_t operation, Code result, std::span<const std::byte> body) {
  const Name name{true, operation};
  Transfer *transfer = find(name);
  // What went well for us may still have ended in a refusal there: its last chunk was on its way.
  if (transfer == nullptr) return result != Code::kOk && was_asked(operation);
  if (transfer->stopped) return false;
  if (result != Code::kOk) {
    transfer->needs_answer = false;
    stop(name, *transfer, result);
    return true;
  }
  if (!transfer->needs_answer || (transfer->outgoing && transfer->next != transfer->bytes.size())) return false;
  if (!transfer->outgoing) {
    if (body.size() != transfer->bytes.size()) return false;
    if (!body.empty()) std::memcpy(transfer->bytes.data(), body.data(), body.size());
    transfer->next = body.size();
  }
  transfer->needs_answer = false;
  note_if_over(name, *transfer);
  return true;
}

// --- the peer's ---------------------------------------------------------------------------------------------------------

bool Transfers::serve_get(std::uint64_t operation, const TransfersHost::Target &source) {
  if (theirs_.size() >= kMaxServed) return false;
  const auto [place, is_new] = theirs_.try_emplace(operation);
  if (!is_new) return false;
  Transfer &transfer = place->second;
  transfer.outgoing = true;
  transfer.bytes = source.bytes;
  transfer.buffer = source.buffer;
  transfer.header = {operation, 0, 0, source.bytes.size(), 0, ChunkType::kGot, 0};
  send({false, operation});
  return true;
}

/// A put's first chunk asks for all of it. What is refused ends at once; its other chunks are thrown away.
Transfers::Transfer *Transfers::accept_first_put(const ChunkHeader &header) {
  if (theirs_.size() >= kMaxServed || header.operation <= last_put_ || theirs_.contains(header.operation)) {
    host_.on_breach("the peer asks for more at once than is allowed, or twice for the same");
    return nullptr;
  }
  last_put_ = header.operation;
  Transfer &transfer = theirs_[header.operation];
  const auto target = host_.target_of_put(header.key, header.offset, header.length);
  transfer.bytes = target.bytes;
  transfer.buffer = target.buffer;
  if (target.code == Code::kOk) return &transfer;
  stop({false, header.operation}, transfer, target.code);
  return nullptr;
}

/// Null: nobody waits for this chunk.
Transfers::Transfer *Transfers::accept_chunk(const ChunkHeader &header) {
  const Name name = name_of(header, false);
  if (!name.ours && header.at == 0) return accept_first_put(header);
  if (name.ours ? !was_asked(header.operation) : header.operation > last_put_) {
    host_.on_breach(name.ours ? "the peer sends what nobody asked for" : "the peer puts without having asked");
    return nullptr;
  }
  Transfer *transfer = find(name);
  if (transfer == nullptr || transfer->stopped) return nullptr;
  if (!transfer->outgoing && header.length == transfer->bytes.size() && header.at == transfer->next &&
      !transfer->needs_answer)
    return transfer;
  host_.on_breach("the peer sends other data than was asked for");
  return nullptr;
}

std::span<std::byte> Transfers::on_chunk(const ChunkHeader &header, std::size_t size_bytes) {
  Transfer *transfer = accept_chunk(header);
  if (transfer == nullptr) return {};
  const auto place = transfer->bytes.subspan(transfer->next, size_bytes);
  transfer->next += size_bytes;
  ++transfer->in_flight;
  ++in_flight_;
  return place;
}

void Transfers::on_chunk_received(const ChunkHeader &header, bool failed) { end_chunk(name_of(header, false), failed); }

void Transfers::on_chunk_sent(const ChunkHeader &header, bool failed) { end_chunk(name_of(header, true), failed); }

/// It may have been taken back.
void Transfers::end_chunk(Name name, bool failed) {
  if (!outgoing_.empty()) host_.pump_transfers_later();
  Transfer *transfer = find(name);
  if (transfer == nullptr || transfer->in_flight == 0) return;
  --transfer->in_flight;
  --in_flight_;
  transfer->failed = transfer->failed || failed;
  note_if_over(name, *transfer);
}

// --- sending --------------------------------------------------------------------------------------------------------------

void Transfers::send(Name name) {
  outgoing_.push_back(name);
  if (pump()) host_.pump_transfers_later();
}

bool Transfers::pump() {
  while (!outgoing_.empty() && host_.takes_chunk()) {
    const Name name = outgoing_.front();
    Transfer *transfer = find(name);
    if (transfer != nullptr && !transfer->stopped && transfer->next < transfer->bytes.size())
      send_next(name, *transfer);
    else
      outgoing_.pop_front();
  }
  return !outgoing_.empty();
}

void Transfers::send_next(Name name, Transfer &transfer) {
  const auto rest = transfer.bytes.subspan(transfer.next);
  const auto chunk = rest.first(std::min(rest.size(), host_.chunk_bytes()));
  transfer.header.at = transfer.next;
  transfer.next += chunk.size();
  const auto sent = host_.send_chunk(transfer.header, chunk);
  if (sent == TransfersHost::Sent::kInFlight) {
    ++transfer.in_flight;
    ++in_flight_;
  }
  transfer.failed = transfer.failed || sent == TransfersHost::Sent::kFailed;
  note_if_over(name, transfer);
}

void Transfers::finish() {
  for (const Name name : std::exchange(ended_, {})) {
    const Transfer *found = find(name);
    if (found == nullptr || !found->over()) continue;
    const Transfer transfer = *found;
    (name.ours ? ours_ : theirs_).erase(name.operation);
    if (name.ours)
      transfer.completion->on_complete(transfer.result == Code::kOk ? Status() : refused_by_peer(transfer.result));
    else if (!transfer.outgoing || transfer.result != Code::kOk)
      host_.answer(name.operation, transfer.result);
  }
}

// --- the end --------------------------------------------------------------------------------------------------------------

std::size_t Transfers::leave(const void *buffer) {
  std::size_t in_flight = 0;
  for (auto &[operation, transfer] : theirs_) {
    if (transfer.buffer != buffer) continue;
    if (!transfer.over()) stop({false, operation}, transfer, Code::kRefused);
    in_flight += transfer.in_flight;
  }
  return in_flight;
}

void Transfers::stop_all() {
  for (auto &[operation, transfer] : ours_) stop({true, operation}, transfer, Code::kCancelled);
  for (auto &[operation, transfer] : theirs_) stop({false, operation}, transfer, Code::kCancelled);
}

std::vector<Completion *> Transfers::take_ours() {
  std::vector<Completion *> completions;
  for (const auto &[operation, transfer] : std::exchange(ours_, {})) completions.push_back(transfer.completion);
  return completions;
}

}  // namespace nnti::framed
