// SPDX-License-Identifier: BSD-3-Clause
// What the endpoint has to do with probes (probe.hpp): it asks, lends, and answers.
#include "nnti/endpoint/impl.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace nnti {

bool Endpoint::Impl::on_ping(Connection &connection, std::span<const std::byte> message) {
  return message.size() >= kMinPingBytes && send(connection.peer, MessageKind::kPong, message).ok();
}

bool Endpoint::Impl::on_borrow(Connection &connection, std::span<const std::byte> message) {
  auto request = decode_borrow(message);
  if (!request || find(connection.peer) == nullptr) return false;
  auto answer = encode_lent(request->id, lend(connection, request->memory));
  return send(connection.peer, MessageKind::kLent, answer).ok();
}

Result<RemoteBuffer> Endpoint::Impl::lend(Connection &connection, ProbeMemory memory) {
  auto found = lent.find(connection.peer.value);
  if (found == lent.end() && lent.size() >= kMaxBorrowers) return Error{Code::kBusy, "too many borrowers"};
  auto &buffer = lent[connection.peer.value][static_cast<std::size_t>(memory)];
  if (!buffer) {
    auto made = memory == ProbeMemory::kAllocated ? allocate(kProbeBytes, Rights::kReadWrite) : allocate_own();
    if (!made.ok()) return made.error();
    buffer = std::move(*made);
  }
  auto registration = buffer->registration_with(connection.transport());
  if (!registration.ok()) return registration.error();
  return (*registration)->describe_for(connection);
}

/// Memory as an application has it.
Result<std::unique_ptr<RegisteredBuffer::Impl>> Endpoint::Impl::allocate_own() {
  auto memory = std::make_unique<std::vector<std::byte>>(kProbeBytes);
  auto buffer = add_buffer(*memory, Rights::kReadWrite);
  buffer->owned = std::move(memory);
  return buffer;
}

void Endpoint::Impl::abandon_operations(PeerId peer, const Error &error) {
  lent.erase(peer.value);
  atomics.abandon(peer, error);
  probes.abandon(peer, error);
}

// --- outside ----------------------------------------------------------------------------------------------------------

void Endpoint::ping(PeerId peer, std::size_t size_bytes, Completion &completion) {
  auto *known = impl_->find(peer);
  const auto limit = known == nullptr ? 0 : known->connection->max_message_bytes();
  if (known != nullptr && size_bytes > limit)
    return completion.on_complete(
        Error{Code::kInvalidArgument,
              fmt::format("an echo of {} bytes; this peer takes at most {} in place", size_bytes, limit)});
  impl_->ask(
      peer, MessageKind::kPing, [&] { return impl_->probes.ping(peer, size_bytes, completion); }, completion);
}

void Endpoint::borrow_memory(PeerId peer, ProbeMemory memory, RemoteBuffer &buffer, Completion &completion) {
  impl_->ask(
      peer, MessageKind::kBorrow, [&] { return impl_->probes.borrow(peer, memory, buffer, completion); }, completion);
}

template <class Encode>
void Endpoint::Impl::ask(PeerId peer, MessageKind kind, Encode encode_request, Completion &completion) {
  if (find(peer) == nullptr)
    return completion.on_complete(Error{Code::kPeerLost, "there is no such peer any more", nessie::Scope::kPeer});
  if (probes.size() >= queue_limit)
    return completion.on_complete(Error{Code::kBusy, "too many echoes are pending; wait for some"});
  const auto request = encode_request();
  if (auto sent = send(peer, kind, request); !sent.ok()) probes.withdraw_last(sent.error());
}

}  // namespace nnti
