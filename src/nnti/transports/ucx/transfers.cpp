// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/transfers.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/ucx/transport.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nnti::ucx {

namespace {

constexpr std::size_t kChunkBytes = 256 << 10;
constexpr std::size_t kChunksInFlight = 4;  // to one peer
constexpr std::size_t kMaxServed = 4096;    // of one peer
static_assert(kChunkBytes <= kMaxChunkBytes);

/// Whether a chunk belongs to an operation of ours.
bool is_ours(ChunkType type, bool sent) { return (type == ChunkType::kPut) == sent; }

}  // namespace

Transfers::Transfer *Transfers::find(Name name) {
  Map &map = name.ours ? ours_ : theirs_;
  const auto found = map.find(name.operation);
  return found == map.end() ? nullptr : &found->second;
}

void Transfers::note_if_over(Name name, const Transfer &transfer) {
  if (!transfer.over()) return;
  ended_.push_back(name);
  connection_.attend_transfers();
}

void Transfers::fail(Transfer &transfer, const char *what, ucs_status_t status) {
  transfer.failed = true;
  connection_.break_with(ucx_error(what, status));
}

/// The peer breaks the protocol.
void Transfers::refuse(const char *why) { connection_.break_with({Code::kBadMessage, why, nessie::Scope::kPeer}); }

// --- ours ---------------------------------------------------------------------------------------------------------------

std::uint64_t Transfers::begin_get(std::span<std::byte> local, Completion &completion) {
  Transfer &transfer = ours_[next_operation_];
  transfer.bytes = local;
  transfer.needs_answer = local.size() <= kMaxInlineBytes;
  transfer.completion = &completion;
  return next_operation_++;
}

std::uint64_t Transfers::begin_put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                                   Completion &completion) {
  const std::uint64_t operation = next_operation_++;
  Transfer &transfer = ours_[operation];
  transfer.outgoing = true;
  transfer.bytes = {const_cast<std::byte *>(local.data()), local.size()};
  transfer.needs_answer = true;
  transfer.completion = &completion;
  if (local.size() <= kMaxInlineBytes) {
    transfer.next = local.size();
    return operation;
  }
  transfer.header = {0, operation, remote.key, offset, local.size(), 0, ChunkType::kPut, 0};
  outgoing_.push_back({true, operation});
  connection_.pump_later();
  return operation;
}

bool Transfers::answered(std::uint64_t operation, Code result, std::span<const std::byte> body) {
  const Name name{true, operation};
  Transfer *transfer = find(name);
  // What went well for us may still have ended in a refusal there: its last chunk was on its way.
  if (transfer == nullptr) return result != Code::kOk && was_asked(operation);
  if (transfer->stopped) return false;
  if (result != Code::kOk) {
    transfer->stop(result);
  } else if (!transfer->needs_answer || (transfer->outgoing && transfer->next != transfer->bytes.size())) {
    return false;
  } else if (!transfer->outgoing) {
    if (body.size() != transfer->bytes.size()) return false;
    if (!body.empty()) std::memcpy(transfer->bytes.data(), body.data(), body.size());
    transfer->next = body.size();
  }
  transfer->needs_answer = false;
  note_if_over(name, *transfer);
  return true;
}

// --- the peer's ---------------------------------------------------------------------------------------------------------

bool Transfers::serve_get(std::uint64_t operation, const Memory &memory, std::span<std::byte> bytes) {
  if (theirs_.size() >= kMaxServed) return false;
  const auto [place, is_new] = theirs_.try_emplace(operation);
  if (!is_new) return false;
  Transfer &transfer = place->second;
  transfer.outgoing = true;
  transfer.bytes = bytes;
  transfer.memory = &memory;
  transfer.header = {0, operation, 0, 0, bytes.size(), 0, ChunkType::kGot, 0};
  outgoing_.push_back({false, operation});
  connection_.pump_later();
  return true;
}

/// A put's first chunk asks for all of it. What is refused ends at once; its other chunks are thrown away.
Transfers::Transfer *Transfers::accept_first_put(const ChunkHeader &header) {
  const bool taken = header.operation <= last_put_ || theirs_.contains(header.operation);
  if (theirs_.size() >= kMaxServed || taken) {
    refuse("the peer asks for more at once than is allowed, or twice for the same");
    return nullptr;
  }
  last_put_ = header.operation;
  Transfer &transfer = theirs_[header.operation];
  transfer.memory = connection_.memory_with(header.key);
  const Code code = transfer.memory == nullptr
                        ? Code::kRefused
                        : transfer.memory->check(Rights::kRemoteWrite, header.offset, header.length);
  if (code == Code::kOk)
    transfer.bytes = transfer.memory->region().bytes.subspan(header.offset, header.length);
  else
    transfer.stop(code);
  note_if_over({false, header.operation}, transfer);
  return transfer.stopped ? nullptr : &transfer;
}

/// Null: nobody waits for this chunk.
Transfers::Transfer *Transfers::accept_chunk(const ChunkHeader &header) {
  const bool ours = is_ours(header.type, false);
  if (!ours && header.at == 0) return accept_first_put(header);
  if (!ours && header.operation > last_put_) {
    refuse("the peer puts without having asked");
    return nullptr;
  }
  if (ours && !was_asked(header.operation)) {
    refuse("the peer sends what nobody asked for");
    return nullptr;
  }
  Transfer *transfer = find({ours, header.operation});
  if (transfer == nullptr || transfer->stopped) return nullptr;
  if (!transfer->outgoing && header.length == transfer->bytes.size() && header.at == transfer->next &&
      (!ours || !transfer->needs_answer))
    return transfer;
  refuse("the peer sends other data than was asked for");
  return nullptr;
}

bool Transfers::on_chunk(const ChunkHeader &header, const Payload &payload) {
  Transfer *transfer = accept_chunk(header);
  if (transfer == nullptr) return false;
  const bool receiving = receive(*transfer, header, payload);
  note_if_over({is_ours(header.type, false), header.operation}, *transfer);
  return receiving;
}

bool Transfers::receive(Transfer &transfer, const ChunkHeader &header, const Payload &payload) {
  const auto into = transfer.bytes.subspan(transfer.next, payload.size_bytes);
  transfer.next += payload.size_bytes;
  if (payload.here) {
    std::memcpy(into.data(), payload.data, into.size());
    return false;
  }
  ChunkSlot &slot = connection_.new_chunk(Work::Kind::kChunkReceived, header);
  const auto status = connection_.receive(payload, into, slot);
  if (status == UCS_INPROGRESS) {
    ++transfer.in_flight;
    ++in_flight_;
    return true;
  }
  connection_.give_back(slot);
  if (status != UCS_OK) fail(transfer, "cannot receive from the peer", status);
  return true;
}

// --- chunks -------------------------------------------------------------------------------------------------------------

void Transfers::pump() {
  while (!outgoing_.empty() && sending_ < kChunksInFlight && connection_.healthy()) {
    const Name name = outgoing_.front();
    Transfer *transfer = find(name);
    if (transfer != nullptr && !transfer->stopped && transfer->next < transfer->bytes.size()) {
      send_next(*transfer);
      note_if_over(name, *transfer);
    } else {
      outgoing_.pop_front();
    }
  }
}

void Transfers::send_next(Transfer &transfer) {
  const auto bytes = transfer.bytes.subspan(transfer.next);
  const auto chunk = bytes.first(std::min(bytes.size(), kChunkBytes));
  transfer.header.at = transfer.next;
  ChunkSlot &slot = connection_.new_chunk(Work::Kind::kChunkSent, transfer.header);
  const auto status = connection_.send_chunk(slot, chunk);
  transfer.next += chunk.size();
  if (status == UCS_INPROGRESS) {
    ++transfer.in_flight;
    ++sending_;
    ++in_flight_;
    return;
  }
  connection_.give_back(slot);
  if (status != UCS_OK) fail(transfer, "cannot send to the peer", status);
}

void Transfers::on_complete(const Work &chunk, ucs_status_t status) {
  const bool sent = chunk.kind == Work::Kind::kChunkSent;
  const Name name{is_ours(chunk.type, sent), chunk.operation};
  --in_flight_;
  if (sent) --sending_;
  if (!outgoing_.empty()) connection_.pump_later();
  Transfer *transfer = find(name);
  if (transfer == nullptr) return;
  --transfer->in_flight;
  if (status != UCS_OK) fail(*transfer, "a transfer with the peer failed", status);
  note_if_over(name, *transfer);
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
      connection_.answer_done(name.operation, transfer.result);
  }
}

// --- the end --------------------------------------------------------------------------------------------------------------

std::size_t Transfers::stop(const Memory &memory) {
  std::size_t in_flight = 0;
  for (auto &[operation, transfer] : theirs_) {
    if (transfer.memory != &memory) continue;
    in_flight += transfer.in_flight;
    if (transfer.over()) continue;
    transfer.stop(Code::kRefused);
    note_if_over({false, operation}, transfer);
  }
  return in_flight;
}

void Transfers::stop_theirs() {
  for (auto &[operation, transfer] : theirs_) transfer.stop(Code::kCancelled);
}

std::vector<Completion *> Transfers::take_ours() {
  std::vector<Completion *> completions;
  for (const auto &[operation, transfer] : std::exchange(ours_, {})) completions.push_back(transfer.completion);
  return completions;
}

}  // namespace nnti::ucx
