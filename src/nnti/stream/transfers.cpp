// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/stream/transfers.hpp"

#include "nnti/transport/registration_check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nnti::stream {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::size_t kChunksWaiting = 2;  // for the socket; a frame goes behind them
constexpr std::size_t kMaxServed = 4096;   // of one peer
static_assert(kChunkBytes <= kMaxChunkBytes);

}  // namespace

std::optional<ChunkHeader> decode_chunk(std::span<const std::byte> bytes, std::size_t size_bytes) {
  ChunkHeader header;
  if (bytes.size() != sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.type != ChunkType::kPut && header.type != ChunkType::kGot) return std::nullopt;
  if (header.at > header.length || size_bytes > header.length - header.at) return std::nullopt;
  return header;
}

Transfers::Transfer *Transfers::find(Name name) {
  auto &map = name.ours ? ours_ : theirs_;
  const auto found = map.find(name.operation);
  return found == map.end() ? nullptr : &found->second;
}

void Transfers::note_if_over(Name name, const Transfer &transfer) {
  if (!transfer.over()) return;
  ended_.push_back(name);
  host_.finish_later();
}

/// Nothing touches its memory any more.
void Transfers::let_go(Transfer &transfer, Code code) {
  if (transfer.in_flight > 0 && transfer.outgoing) lane_.copy_unsent(transfer.bytes);
  if (transfer.in_flight > 0 && !transfer.outgoing) lane_.discard_arriving();
  transfer.in_flight = 0;
  transfer.stopped = true;
  transfer.result = code;
}

void Transfers::stop(Name name, Transfer &transfer, Code code) {
  if (transfer.stopped) return;
  let_go(transfer, code);
  note_if_over(name, transfer);
}

// --- ours ---------------------------------------------------------------------------------------------------------------

void Transfers::begin_get(std::uint64_t operation, std::span<std::byte> local, Completion &completion) {
  Transfer &transfer = ours_[operation];
  transfer.bytes = local;
  transfer.completion = &completion;
  lane_.expect_chunk();
}

void Transfers::begin_put(std::uint64_t operation, const RemoteBuffer &remote, std::uint64_t offset,
                          std::span<const std::byte> local, Completion &completion) {
  Transfer &transfer = ours_[operation];
  transfer.outgoing = true;
  transfer.bytes = {const_cast<std::byte *>(local.data()), local.size()};
  transfer.needs_answer = true;
  transfer.completion = &completion;
  transfer.header = {operation, remote.key, offset, local.size(), 0, ChunkType::kPut, 0};
  outgoing_.push_back({true, operation});
  if (pump()) host_.pump_later();
}

bool Transfers::answered(std::uint64_t operation, Code result) {
  const Name name{true, operation};
  Transfer *transfer = find(name);
  if (transfer == nullptr) return false;
  if (transfer->stopped) return true;
  if (result != Code::kOk) {
    stop(name, *transfer, result);
    return true;
  }
  if (!transfer->needs_answer || transfer->next != transfer->bytes.size()) return false;
  transfer->needs_answer = false;
  transfer->in_flight = 0;  // the peer has all of it
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
  outgoing_.push_back({false, operation});
  if (pump()) host_.pump_later();
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
  const bool ours = header.type == ChunkType::kGot;
  if (!ours && header.at == 0) return accept_first_put(header);
  Transfer *transfer = find({ours, header.operation});
  if (transfer == nullptr && !ours && header.operation > last_put_) {
    host_.on_breach("the peer puts without having asked");
    return nullptr;
  }
  if (transfer == nullptr || transfer->stopped) return nullptr;
  if (!transfer->outgoing && header.length == transfer->bytes.size() && header.at == transfer->next) return transfer;
  host_.on_breach("the peer sends other data than was asked for");
  return nullptr;
}

std::span<std::byte> Transfers::on_chunk(std::span<const std::byte> bytes, std::size_t size_bytes) {
  const auto header = decode_chunk(bytes, size_bytes);
  if (!header) {
    host_.on_breach("the peer sends what cannot be read");
    return {};
  }
  Transfer *transfer = accept_chunk(*header);
  if (transfer == nullptr) return {};
  arriving_ = {header->type == ChunkType::kGot, header->operation};
  const auto place = transfer->bytes.subspan(transfer->next, size_bytes);
  transfer->next += size_bytes;
  ++transfer->in_flight;
  return place;
}

void Transfers::on_chunk_end() {
  Transfer *transfer = find(arriving_);
  if (transfer == nullptr || transfer->stopped) return;
  --transfer->in_flight;
  note_if_over(arriving_, *transfer);
}

// --- chunks that leave --------------------------------------------------------------------------------------------------

bool Transfers::pump() {
  while (!outgoing_.empty() && lane_.unsent_chunks() < kChunksWaiting) {
    const Name name = outgoing_.front();
    Transfer *transfer = find(name);
    if (transfer != nullptr && !transfer->stopped && transfer->next < transfer->bytes.size())
      send_next(name, *transfer);
    else
      outgoing_.pop_front();
  }
  return !outgoing_.empty() || lane_.has_unsent();
}

void Transfers::send_next(Name name, Transfer &transfer) {
  const auto rest = transfer.bytes.subspan(transfer.next);
  const auto chunk = rest.first(std::min(rest.size(), kChunkBytes));
  transfer.header.at = transfer.next;
  transfer.next += chunk.size();
  if (!lane_.send_chunk(std::as_bytes(std::span(&transfer.header, 1)), chunk, id_of(name))) ++transfer.in_flight;
  note_if_over(name, transfer);
}

void Transfers::on_chunk_sent(std::uint64_t id) {
  const Name name{(id & 1) != 0, id >> 1};
  Transfer *transfer = find(name);
  if (transfer == nullptr || transfer->stopped || transfer->in_flight == 0) return;
  --transfer->in_flight;
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
      host_.answer(name.operation, transfer.result);
  }
}

// --- the end --------------------------------------------------------------------------------------------------------------

void Transfers::leave(const void *buffer) {
  for (auto &[operation, transfer] : theirs_)
    if (transfer.buffer == buffer) stop({false, operation}, transfer, Code::kRefused);
}

std::vector<Completion *> Transfers::take_ours() {
  std::vector<Completion *> completions;
  for (auto &[operation, transfer] : ours_) {
    let_go(transfer, Code::kCancelled);
    completions.push_back(transfer.completion);
  }
  ours_.clear();
  return completions;
}

void Transfers::stop_theirs() {
  for (auto &[operation, transfer] : theirs_) let_go(transfer, Code::kCancelled);
}

}  // namespace nnti::stream
