// SPDX-License-Identifier: BSD-3-Clause
// The owner's side of get and put: checks, then writes to or reads from what the peer exposed, in pieces.
#include "nnti/transports/ofi/transport.hpp"

#include <base/log.hpp>

#include <algorithm>
#include <chrono>

namespace nnti::ofi {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunkBytes = 4 << 20;
constexpr std::size_t kChunksInFlight = 4;
constexpr std::size_t kMaxServed = 4096;  // of one peer
constexpr auto kPatience = 2s;            // with a peer whose transfer keeps memory that is to be unregistered

FrameHeader done(const FrameHeader &request, Code result) {
  FrameHeader header;
  header.type = FrameType::kDone;
  header.operation = request.operation;
  header.result = static_cast<std::uint16_t>(result);
  return header;
}

}  // namespace

Code check(const Memory *memory, const FrameHeader &request) {
  if (memory == nullptr) return Code::kRefused;
  const auto needed = request.type == FrameType::kGet ? Rights::kRemoteRead : Rights::kRemoteWrite;
  if (!(static_cast<std::uint32_t>(memory->rights()) & static_cast<std::uint32_t>(needed))) return Code::kRefused;
  const std::uint64_t size = memory->bytes().size();
  if (request.offset > size || request.length > size - request.offset) return Code::kOutOfRange;
  return Code::kOk;
}

void OfiTransport::serve(OfiConnection &connection, const Frame &frame) {
  const auto &request = frame.header;
  const auto found = memories_.find(request.key);
  Memory *memory = found == memories_.end() ? nullptr : found->second;
  if (Code code = check(memory, request); code != Code::kOk) return connection.answer(done(request, code));
  if (request.exposed == kOverLane) return connection.serve_over_lane(frame, *memory);
  if (request.exposed == kInline) {
    const auto range = memory->bytes().subspan(request.offset, request.length);
    if (request.type == FrameType::kGet) return connection.answer(done(request, Code::kOk), range);
    if (!range.empty()) std::memcpy(range.data(), frame.body.data(), range.size());
    return connection.answer(done(request, Code::kOk));
  }
  if (connection.served >= kMaxServed)
    return connection.break_with(
        {Code::kBadMessage, "the peer asks for more at once than is allowed", nessie::Scope::kPeer});
  ++connection.served;
  served_.push_back({connection.token(), request, memory, 0, 0, Code::kOk, connection.address()});
  begin_chunks(served_.back());
  if (served_.back().over()) finish_served(std::prev(served_.end()));
}

void OfiTransport::begin_chunks(Served &served) {
  const std::uint64_t largest = std::min<std::uint64_t>(kChunkBytes, fabric_->info().ep_attr->max_msg_size);
  while (served.result == Code::kOk && served.next < served.request.length && served.in_flight < kChunksInFlight)
    if (!begin_chunk(served, std::min(largest, served.request.length - served.next))) return;
}

bool OfiTransport::begin_chunk(Served &served, std::uint64_t length) {
  const auto part = served.memory->bytes().subspan(served.request.offset + served.next, length);
  auto lease = served.memory->lease(part);
  if (!lease.ok()) {
    served.result = lease.code();
    return false;
  }
  if (free_chunks_.empty()) free_chunks_.push_back(&chunks_.emplace_back());
  Chunk &chunk = *free_chunks_.back();
  chunk.kind = Work::Kind::kTransfer;
  chunk.served = &served;
  iovec local{part.data(), part.size()};
  fi_rma_iov remote{served.request.address + served.next, length, served.request.rkey};
  void *descriptor = lease->valid() ? lease->as<LocalRegistration>().descriptor() : nullptr;
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = served.address;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = static_cast<Work *>(&chunk);
  const bool get = served.request.type == FrameType::kGet;
  const auto rc = get ? fi_writemsg(fabric_->endpoint(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                      : fi_readmsg(fabric_->endpoint(), &message, FI_COMPLETION);
  if (rc == -FI_EAGAIN)
    stalled_ = true;
  else if (rc != 0)
    served.result = Code::kIo;
  if (rc != 0) return false;
  free_chunks_.pop_back();
  chunk.lease = std::move(*lease);
  ++served.in_flight;
  served.next += length;
  return true;
}

void OfiTransport::continue_served() {
  for (auto it = served_.begin(); it != served_.end();) {
    auto served = it++;
    if (peers_.find(served->token) == nullptr && served->result == Code::kOk) served->result = Code::kPeerLost;
    begin_chunks(*served);
    if (served->over()) finish_served(served);
  }
}

void OfiTransport::finish_served(std::list<Served>::iterator served) {
  if (OfiConnection *connection = peers_.find(served->token)) {
    --connection->served;
    // An answer that the link's failure spoiled would be taken for the last word; without, it is asked for again.
    if (connection->state() == OfiConnection::State::kOpen && !connection->breaking())
      connection->answer(done(served->request, served->result));
  }
  served_.erase(served);
}

/// Begins no more chunks for those; the number of chunks still under way.
template <class Which> std::size_t OfiTransport::refuse_served(Which which) {
  std::size_t count = 0;
  for (auto &served : served_) {
    if (!which(served)) continue;
    served.result = served.result == Code::kOk ? Code::kRefused : served.result;
    count += served.in_flight;
  }
  return count;
}

/// False: some go on for too long.
template <class Which> bool OfiTransport::wait_for_served(Which which) {
  for (const auto deadline = Deadline::in(kPatience); refuse_served(which) > 0 && !deadline.passed();) poll_queue();
  return refuse_served(which) == 0;
}

/// Returns when no transfer touches the memory any more. A peer that keeps one going for too long is given up.
void OfiTransport::remove_memory(Memory &memory) {
  memories_.erase(memory.key());
  for (auto &[token, connection] : peers_.all()) connection->leave(memory);
  const auto touches_it = [&](const Served &served) { return served.memory == &memory; };
  if (wait_for_served(touches_it)) return;
  for (auto &served : served_)
    if (OfiConnection *connection = peers_.find(served.token); connection && touches_it(served)) connection->sever();
  (void)wait_for_served(touches_it);
}

void OfiTransport::end_transfers(const OfiConnection &connection) {
  const auto is_its = [&](const Served &served) { return served.token == connection.token(); };
  if (!wait_for_served(is_its)) nessie::log::warning("ofi: a transfer of a connection that was given up does not end");
}

}  // namespace nnti::ofi
