// SPDX-License-Identifier: BSD-3-Clause
// Handles of the C interface: conversions, XDR, names of results.
#include "nnti/c/face.hpp"

#include <nnti/c/api.hpp>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include <cstring>

namespace nnti {

NNTI_peer_t peer_to_c(PeerId id, std::string_view url, std::uint64_t instance) {
  NNTI_peer_t peer{};
  peer.datatype = NNTI_dt_peer;
  if (!url.empty() && url.size() < sizeof peer.url) std::memcpy(peer.url, url.data(), url.size());
  peer.peer = {instance, id.value};
  return peer;
}

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
static_assert(NNTI_EPEERLOST == static_cast<int>(face::kEPEERLOST) && NNTI_EINVAL == static_cast<int>(face::kEINVAL) &&
              NNTI_TRANSPORT_COUNT == face::kTransportCount);

namespace {

bool xdr_u64(XDR *xdrs, std::uint64_t &value) { return xdr_uint64_t(xdrs, &value); }
bool xdr_u32(XDR *xdrs, std::uint32_t &value) { return xdr_uint32_t(xdrs, &value); }

/// An XDR string in a fixed array; nothing is allocated.
bool xdr_url(XDR *xdrs, char (&url)[NNTI_URL_LEN]) {
  std::uint32_t length = xdrs->x_op == XDR_ENCODE ? strnlen(url, sizeof url - 1) : 0;
  if (!xdr_u32(xdrs, length) || length >= sizeof url || !xdr_opaque(xdrs, url, length)) return false;
  if (xdrs->x_op == XDR_DECODE) std::memset(url + length, 0, sizeof url - length);
  return true;
}

bool xdr_peer(XDR *xdrs, NNTI_peer_t &peer) {
  std::uint32_t type = peer.datatype;
  if (!xdr_u32(xdrs, type) || type != NNTI_dt_peer) return false;
  peer.datatype = NNTI_dt_peer;
  return xdr_url(xdrs, peer.url) && xdr_u64(xdrs, peer.peer.instance) && xdr_u64(xdrs, peer.peer.local_id);
}

bool xdr_addr(XDR *xdrs, NNTI_remote_addr_t &addr) {
  return xdr_u64(xdrs, addr.id) && xdr_u64(xdrs, addr.described_for) && xdr_u64(xdrs, addr.key) &&
         xdr_u64(xdrs, addr.address) && xdr_u64(xdrs, addr.size_bytes) && xdr_u64(xdrs, addr.location) &&
         xdr_u32(xdrs, addr.slot) && xdr_u32(xdrs, addr.rights);
}

bool xdr_buffer(XDR *xdrs, NNTI_buffer_t &buffer) {
  std::uint32_t type = buffer.datatype, transport = buffer.transport_id;
  if (!xdr_u32(xdrs, type) || type != NNTI_dt_buffer) return false;
  if (!xdr_u32(xdrs, transport) || transport >= NNTI_TRANSPORT_COUNT) return false;
  buffer.datatype = NNTI_dt_buffer;
  buffer.transport_id = static_cast<NNTI_transport_id_t>(transport);
  return xdr_peer(xdrs, buffer.buffer_owner) && xdr_u32(xdrs, buffer.ops) && xdr_u64(xdrs, buffer.payload_size) &&
         xdr_u64(xdrs, buffer.num_elements) && xdr_u64(xdrs, buffer.payload) && xdr_addr(xdrs, buffer.buffer_addr);
}

/// Decodes aside, so that a handle is changed only by a decoding that succeeds.
template <class Handle> int xdr_handle(XDR *xdrs, Handle *handle, bool (*code)(XDR *, Handle &)) {
  if (xdrs == nullptr || handle == nullptr) return 0;
  if (xdrs->x_op == XDR_FREE) return 1;
  Handle copy = xdrs->x_op == XDR_ENCODE ? *handle : Handle{};
  if (!code(xdrs, copy)) return 0;
  if (xdrs->x_op == XDR_DECODE) *handle = copy;
  return 1;
}

}  // namespace
}  // namespace nnti

extern "C" int xdr_NNTI_peer_t(XDR *xdrs, NNTI_peer_t *peer) { return nnti::xdr_handle(xdrs, peer, nnti::xdr_peer); }

extern "C" int xdr_NNTI_buffer_t(XDR *xdrs, NNTI_buffer_t *buffer) {
  return nnti::xdr_handle(xdrs, buffer, nnti::xdr_buffer);
}

extern "C" const char *nnti_err_str(const int rc) { return nnti::face::name_of(rc); }
