// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/endpoint/impl.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace nnti {

RegisteredBuffer::Impl::~Impl() {
  if (endpoint != nullptr && !endpoint->birth.was_here()) {  // the registrations are those of the process that forked
    for (auto &registration : registrations) (void)registration.second.release();
    return;
  }
  registrations.clear();  // before the memory goes
  if (endpoint != nullptr) endpoint->buffers.erase(position);
}

Result<TransportMemory *> RegisteredBuffer::Impl::registration_with(Transport &transport) {
  auto same = [&](const auto &registration) { return registration.first == &transport; };
  auto found = std::ranges::find_if(registrations, same);
  if (found != registrations.end()) return found->second.get();
  auto memory = transport.register_memory(region);
  if (!memory.ok()) return memory.error();
  registrations.emplace_back(&transport, std::move(*memory));
  return registrations.back().second.get();
}

RegisteredBuffer::RegisteredBuffer() = default;
RegisteredBuffer::RegisteredBuffer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegisteredBuffer::RegisteredBuffer(RegisteredBuffer &&) noexcept = default;
RegisteredBuffer &RegisteredBuffer::operator=(RegisteredBuffer &&) noexcept = default;
RegisteredBuffer::~RegisteredBuffer() = default;

std::span<std::byte> RegisteredBuffer::bytes() const { return impl_ ? impl_->region.bytes : std::span<std::byte>(); }
Rights RegisteredBuffer::rights() const { return impl_ ? impl_->region.rights : Rights::kNone; }
void RegisteredBuffer::outlive_endpoint() { impl_->outlives_endpoint = true; }
void RegisteredBuffer::reset() { impl_.reset(); }

Result<RemoteBuffer> RegisteredBuffer::describe_for(PeerId peer) const {
  if (!impl_) return Error{Code::kInvalidArgument, "the buffer is not registered"};
  auto *known = impl_->endpoint == nullptr ? nullptr : impl_->endpoint->find(peer);
  if (known == nullptr)
    return Error{Code::kPeerLost, fmt::format("there is no peer {} any more", peer.value), nessie::Scope::kPeer};
  auto memory = impl_->registration_with(known->connection->transport());
  if (!memory.ok()) return memory.error();
  return (*memory)->describe_for(*known->connection);
}

}  // namespace nnti
