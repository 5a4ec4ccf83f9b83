// SPDX-License-Identifier: BSD-3-Clause
// Handles of the C interface: conversions, XDR, names of results.
#include <nnti/c_api.hpp>

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
  return ops;
}

Rights rights_of(NNTI_buf_ops_t ops) {
  std::uint32_t bits = 0;
  if (ops & NNTI_BOP_REMOTE_READ) bits |= static_cast<std::uint32_t>(Rights::kRemoteRead);
  if (ops & NNTI_BOP_REMOTE_WRITE) bits |= static_cast<std::uint32_t>(Rights::kRemoteWrite);
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
  remote.rights = static_cast<Rights>(addr.rights & static_cast<std::uint32_t>(Rights::kReadWrite));
  return remote;
}

std::optional<std::vector<std::string>> transports_of(NNTI_transport_id_t id) {
  switch (id) {
    case NNTI_TRANSPORT_AUTO: return std::vector<std::string>{};
    case NNTI_TRANSPORT_LOCAL: return std::vector<std::string>{"inproc", "shm"};
    case NNTI_TRANSPORT_SHM: return std::vector<std::string>{"shm"};
    case NNTI_TRANSPORT_OFI: return std::vector<std::string>{"ofi"};
    case NNTI_TRANSPORT_INPROC: return std::vector<std::string>{"inproc"};
    default: return std::nullopt;
  }
}

NNTI_result_t result_of(Code code) {
  switch (code) {
    case Code::kOk: return NNTI_OK;
    case Code::kTimedOut: return NNTI_ETIMEDOUT;
    case Code::kPeerLost: return NNTI_EPEERLOST;
    case Code::kRefused: return NNTI_EPERM;
    case Code::kInvalidArgument:
    case Code::kOutOfRange: return NNTI_EINVAL;
    case Code::kNotFound: return NNTI_ENOENT;
    case Code::kExists: return NNTI_EEXIST;
    case Code::kUnsupported: return NNTI_ENOTSUP;
    case Code::kNoMemory: return NNTI_ENOMEM;
    case Code::kBusy: return NNTI_EAGAIN;
    case Code::kBadMessage: return NNTI_EDECODE;
    case Code::kCancelled: return NNTI_ECANCELED;
    case Code::kNoResult: return NNTI_EBADRPC;
    case Code::kIo:
    case Code::kInternal: return NNTI_EIO;
  }
  return NNTI_EIO;
}

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

extern "C" const char *nnti_err_str(const int rc) {
  switch (rc) {
#define NNTI_NAME(code) \
  case code: return #code
    NNTI_NAME(NNTI_OK);
    NNTI_NAME(NNTI_EIO);
    NNTI_NAME(NNTI_EMSGSIZE);
    NNTI_NAME(NNTI_ECANCELED);
    NNTI_NAME(NNTI_ETIMEDOUT);
    NNTI_NAME(NNTI_EINVAL);
    NNTI_NAME(NNTI_ENOMEM);
    NNTI_NAME(NNTI_ENOENT);
    NNTI_NAME(NNTI_ENOTSUP);
    NNTI_NAME(NNTI_EEXIST);
    NNTI_NAME(NNTI_EBADRPC);
    NNTI_NAME(NNTI_ENOTINIT);
    NNTI_NAME(NNTI_EPERM);
    NNTI_NAME(NNTI_EINTR);
    NNTI_NAME(NNTI_EWOULDBLOCK);
    NNTI_NAME(NNTI_EAGAIN);
    NNTI_NAME(NNTI_EDROPPED);
    NNTI_NAME(NNTI_EDECODE);
    NNTI_NAME(NNTI_EENCODE);
    NNTI_NAME(NNTI_EPEERLOST);
#undef NNTI_NAME
    default: return "unknown NNTI result";
  }
}
