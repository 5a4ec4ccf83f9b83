// SPDX-License-Identifier: BSD-3-Clause
// Handles of the C interface: conversions, XDR, names of results.
#include "nnti/c/handles.hpp"
#include "nnti/c/face.hpp"
#include "nnti/c/xdr_parts.hpp"

#include <cstring>

namespace nnti {

NNTI_peer_t peer_to_c(PeerId id, std::string_view url, std::uint64_t instance) {
  NNTI_peer_t peer{};
  peer.datatype = NNTI_dt_peer;
  if (!url.empty() && url.size() < sizeof peer.url) std::memcpy(peer.url, url.data(), url.size());
  peer.peer = {instance, id.value};
  return peer;
}

NNTI_peer_t peer_to_c(const PeerInfo &peer) { return peer_to_c({}, peer.url, peer.process.value); }
NNTI_peer_t myself(const Context &context) { return peer_to_c({}, context.url(), context.id().value); }

NNTI_buf_ops_t ops_of(Rights rights) {
  const auto bits = static_cast<std::uint32_t>(rights);
  NNTI_buf_ops_t ops = 0;
  if (bits & static_cast<std::uint32_t>(Rights::kRemoteRead)) ops |= NNTI_GET_SRC;
  if (bits & static_cast<std::uint32_t>(Rights::kRemoteWrite)) ops |= NNTI_PUT_DST;
  if (bits & static_cast<std::uint32_t>(Rights::kRemoteAtomic)) ops |= NNTI_ATOMICS;
  return ops;
}

Rights rights_of(NNTI_buf_ops_t ops) {
  std::uint32_t bits = 0;
  if (ops & NNTI_BOP_REMOTE_READ) bits |= static_cast<std::uint32_t>(Rights::kRemoteRead);
  if (ops & NNTI_BOP_REMOTE_WRITE) bits |= static_cast<std::uint32_t>(Rights::kRemoteWrite);
  if (ops & NNTI_BOP_ATOMICS) bits |= static_cast<std::uint32_t>(Rights::kRemoteAtomic);
  return static_cast<Rights>(bits);
}

NNTI_buffer_t buffer_to_c(const RemoteBuffer &remote, const NNTI_peer_t &owner) {
  NNTI_buffer_t buffer{};
  buffer.datatype = NNTI_dt_buffer;
  buffer.transport_id = NNTI_TRANSPORT_AUTO;
  buffer.buffer_owner = owner;
  buffer.ops = ops_of(remote.rights);
  buffer.payload_size = remote.size_bytes;
  buffer.num_elements = 1;
  buffer.buffer_addr.key = remote.key;
  buffer.buffer_addr.address = remote.address;
  buffer.buffer_addr.size_bytes = remote.size_bytes;
  buffer.buffer_addr.location = remote.location;
  buffer.buffer_addr.slot = remote.slot;
  buffer.buffer_addr.rights = static_cast<std::uint32_t>(remote.rights);
  return buffer;
}

RemoteBuffer buffer_from_c(const NNTI_buffer_t &buffer) {
  const NNTI_remote_addr_t &addr = buffer.buffer_addr;
  RemoteBuffer remote;
  remote.key = addr.key;
  remote.address = addr.address;
  remote.size_bytes = addr.size_bytes;
  remote.location = addr.location;
  remote.slot = addr.slot;
  remote.rights =
      static_cast<Rights>(addr.rights & static_cast<std::uint32_t>(Rights::kReadWrite | Rights::kRemoteAtomic));
  return remote;
}

BufferHandle handle_from_c(const NNTI_buffer_t &buffer) {
  BufferHandle handle;
  handle.owner = {buffer.buffer_owner.peer.instance};
  handle.id = buffer.buffer_addr.id;
  handle.purposes = static_cast<Purpose>(buffer.ops);
  handle.element_size = buffer.payload_size;
  handle.elements = buffer.num_elements;
  handle.described_for = {buffer.buffer_addr.described_for};
  handle.description = buffer_from_c(buffer);
  return handle;
}

NNTI_buffer_t handle_to_c(const BufferHandle &handle, const NNTI_peer_t &owner, const void *payload) {
  NNTI_buffer_t buffer = buffer_to_c(handle.description, owner);
  buffer.ops = static_cast<NNTI_buf_ops_t>(handle.purposes);
  buffer.payload_size = handle.element_size;
  buffer.num_elements = handle.elements;
  buffer.payload = reinterpret_cast<std::uintptr_t>(payload);
  buffer.buffer_addr.id = handle.id;
  buffer.buffer_addr.described_for = handle.described_for.value;
  return buffer;
}

std::optional<std::vector<std::string>> transports_of(NNTI_transport_id_t id) {
  auto names = face::transports_numbered(id);
  if (!names.ok()) return std::nullopt;
  return std::move(*names);
}

NNTI_result_t result_of(Code code) { return static_cast<NNTI_result_t>(face::number_of(code)); }
static_assert(NNTI_EPEERLOST == static_cast<int>(face::kEPEERLOST) && NNTI_EINVAL == static_cast<int>(face::kEINVAL));

namespace {

using namespace parts;

bool peer(XDR *xdrs, NNTI_peer_t &value) {
  return enumerator(xdrs, value.datatype, NNTI_dt_peer, NNTI_dt_peer) && text(xdrs, value.url) &&
         u64(xdrs, value.peer.instance) && u64(xdrs, value.peer.local_id);
}

bool addr(XDR *xdrs, NNTI_remote_addr_t &value) {
  return u64(xdrs, value.id) && u64(xdrs, value.described_for) && u64(xdrs, value.key) && u64(xdrs, value.address) &&
         u64(xdrs, value.size_bytes) && u64(xdrs, value.location) && u32(xdrs, value.slot) && u32(xdrs, value.rights);
}

bool buffer(XDR *xdrs, NNTI_buffer_t &value) {
  return enumerator(xdrs, value.datatype, NNTI_dt_buffer, NNTI_dt_buffer) &&
         enumerator(xdrs, value.transport_id, 0, NNTI_TRANSPORT_COUNT - 1) && peer(xdrs, value.buffer_owner) &&
         u32(xdrs, value.ops) && u64(xdrs, value.payload_size) && u64(xdrs, value.num_elements) &&
         u64(xdrs, value.payload) && addr(xdrs, value.buffer_addr);
}

}  // namespace
}  // namespace nnti

extern "C" int xdr_NNTI_peer_t(XDR *xdrs, NNTI_peer_t *peer) { return nnti::whole(xdrs, peer, nnti::peer); }

extern "C" int xdr_NNTI_buffer_t(XDR *xdrs, NNTI_buffer_t *buffer) { return nnti::whole(xdrs, buffer, nnti::buffer); }

extern "C" const char *nnti_err_str(const int rc) { return nnti::face::name_of(rc); }
