// SPDX-License-Identifier: BSD-3-Clause
// The owner's side of get and put: checks, then writes to or reads from what the peer exposed, in pieces.
#include "nnti/transports/ofi/sockets.hpp"
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
constexpr auto kPatienceWithServed = 2s;  // with a peer whose connection was given up

}  // namespace

bool OfiTransport::serve(OfiConnection &connection, const framed::FrameHeader &request, const Exposed &exposed,
                         Memory &memory) {
  if (connection.served >= kMaxServed) return false;
  ++connection.served;
  served_.push_back({connection.token(), request, exposed, &memory, connection.address(), 0, 0, Code::kOk});
  begin_chunks(served_.back());
  if (served_.back().over()) finish_served(std::prev(served_.end()));
  return true;
}

void OfiTransport::begin_chunks(Served &served) {
  const auto *connection = find_peer(served.token);
  const bool is_lost = connection == nullptr || !connection->reaches_peer();
  if (is_lost && served.result == Code::kOk) served.result = Code::kPeerLost;
  const std::uint64_t largest = std::min<std::uint64_t>(kChunkBytes, fabric_->info().ep_attr->max_msg_size);
  while (served.result == Code::kOk && served.next < served.request.length && served.in_flight < kChunksInFlight)
    if (!begin_chunk(served, std::min(largest, served.request.length - served.next))) return;
}

bool OfiTransport::begin_chunk(Served &served, std::uint64_t length) {
  const auto part = served.memory->range(served.request.offset + served.next, length);
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
  fi_rma_iov remote{served.exposed.address + served.next, length, served.exposed.rkey};
  void *descriptor = lease->valid() ? lease->as<LocalRegistration>().descriptor() : nullptr;
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = served.peer;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = static_cast<Work *>(&chunk);
  const bool get = served.request.type == framed::FrameType::kGet;
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
    begin_chunks(*served);
    if (served->over()) finish_served(served);
  }
}

void OfiTransport::finish_served(std::list<Served>::iterator served) {
  if (OfiConnection *connection = find_peer(served->token))
    connection->end_served(served->request.operation, served->result);
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

std::size_t OfiTransport::stop_using(const framed::Memory &memory) {
  return refuse_served([&](const Served &served) { return served.memory == &memory; });
}

void OfiTransport::sever_users_of(const framed::Memory &memory) {
  for (auto &served : served_)
    if (OfiConnection *connection = find_peer(served.token); connection && served.memory == &memory)
      connection->sever();
}

/// Returns when no chunk of those is under way any more.
template <class Which> void OfiTransport::await_end_of(Which which) {
  for (const auto deadline = Deadline::in(kPatienceWithServed); refuse_served(which) > 0; poll())
    if (deadline.passed()) return nessie::log::warning("ofi: a transfer with a peer that was given up does not end");
}

void OfiTransport::end_served(const OfiConnection &connection) {
  await_end_of([&](const Served &served) { return served.token == connection.token(); });
}

void OfiTransport::end_reads(fi_addr_t peer, std::span<const std::byte> name) {
  if (!fabric_->must_end_reads()) return;
  const auto is_read = [&](const Served &served) {
    return served.peer == peer && served.request.type == framed::FrameType::kPut;
  };
  poll();  // of a process that ended there is nothing to wait for
  if (refuse_served(is_read) == 0) return;
  shut_sockets_between(fabric_->name(), name);
  await_end_of(is_read);
}

}  // namespace nnti::ofi
