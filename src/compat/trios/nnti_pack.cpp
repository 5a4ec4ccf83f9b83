// SPDX-License-Identifier: BSD-3-Clause
// Trios_nnti.h: handles as bytes. Four bytes of datatype in this machine's order, then XDR.
#include "compat/trios/nnti.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace nnti::trios {

namespace {

constexpr std::size_t kTag = sizeof(std::uint32_t);

struct Codec {
  NNTI_datatype_t type;
  bool_t (*code)(XDR *, void *);
};

template <class T, bool_t (*kCode)(XDR *, T *)> bool_t erased(XDR *xdrs, void *value) {
  return kCode(xdrs, static_cast<T *>(value));
}

constexpr std::array<Codec, 5> kCodecs = {{
    {NNTI_dt_transport, erased<NNTI_transport_t, xdr_NNTI_transport_t>},
    {NNTI_dt_peer, erased<NNTI_peer_t, xdr_NNTI_peer_t>},
    {NNTI_dt_buffer, erased<NNTI_buffer_t, xdr_NNTI_buffer_t>},
    {NNTI_dt_work_request, erased<NNTI_work_request_t, xdr_NNTI_work_request_t>},
    {NNTI_dt_status, erased<NNTI_status_t, xdr_NNTI_status_t>},
}};

const Codec *codec_of(std::uint32_t type) {
  for (const auto &codec : kCodecs)
    if (codec.type == static_cast<NNTI_datatype_t>(type)) return &codec;
  return nullptr;
}

std::uint32_t tag_of(const void *bytes) {
  std::uint32_t tag;
  std::memcpy(&tag, bytes, sizeof tag);
  return tag;
}

/// Whether the segments that a handle of ours points to are there yet.
bool has_segments(const NNTI_buffer_t &buffer) {
  auto owner = transport_of({buffer.buffer_owner.peer.instance});
  if (!owner) return !face::was_open({buffer.buffer_owner.peer.instance});
  std::lock_guard guard(owner->mutex);
  return owner->segments.contains(buffer.transport_private);
}

/// Whether the segments are the registration's, to be freed with it.
bool owns_segments(const NNTI_buffer_t &buffer) {
  auto owner = transport_of({buffer.buffer_owner.peer.instance});
  if (!owner) return false;
  std::lock_guard guard(owner->mutex);
  auto found = owner->segments.find(buffer.transport_private);
  return found != owner->segments.end() && found->second.data() == buffer.buffer_segments.NNTI_remote_addr_array_t_val;
}

Outcome check_alive(std::uint32_t type, const void *value) {
  const NNTI_buffer_t *buffer = nullptr;
  if (type == NNTI_dt_buffer) buffer = static_cast<const NNTI_buffer_t *>(value);
  if (buffer == nullptr || buffer->buffer_segments.NNTI_remote_addr_array_t_len == 0 || has_segments(*buffer))
    return {};
  return {face::kENOENT, "the buffer is not registered any more"};
}

/// XDR size and the codec of a handle.
Outcome measure(void *value, const Codec *&codec, std::uint64_t &size) {
  codec = codec_of(tag_of(value));
  if (codec == nullptr) return {face::kEINVAL, "this is no NNTI handle: its datatype is not set"};
  if (auto alive = check_alive(codec->type, value); !alive.ok()) return alive;
  size = xdr_sizeof(reinterpret_cast<xdrproc_t>(codec->code), value);
  if (size == 0) return {face::kEENCODE, "the handle cannot be encoded: a field has a value that it cannot have"};
  size += kTag;
  return {};
}

/// Programs put and get while the owner computes.
void look_up(const Transport &transport, const NNTI_buffer_t &buffer) {
  const auto handle = handle_of(buffer);
  if (any(handle.purposes & (Purpose::kRemoteRead | Purpose::kRemoteWrite))) transport.context->look_up(handle);
}

}  // namespace
}  // namespace nnti::trios

using namespace nnti::trios;
namespace face = nnti::face;

extern "C" {

NNTI_result_t NNTI_dt_sizeof(const NNTI_transport_t *trans_hdl, void *nnti_dt, uint64_t *packed_len) {
  return on_transport(trans_hdl, [&](const TransportPtr &) -> Outcome {
    if (nnti_dt == nullptr || packed_len == nullptr) return face::null_argument();
    const Codec *codec = nullptr;
    uint64_t size = 0;
    if (auto outcome = measure(nnti_dt, codec, size); !outcome.ok()) return outcome;
    *packed_len = size;
    return {};
  });
}

NNTI_result_t NNTI_dt_pack(const NNTI_transport_t *trans_hdl, void *nnti_dt, char *packed_buf,
                           const uint64_t packed_buflen) {
  return on_transport(trans_hdl, [&](const TransportPtr &) -> Outcome {
    if (nnti_dt == nullptr || packed_buf == nullptr) return face::null_argument();
    const Codec *codec = nullptr;
    uint64_t size = 0;
    if (auto outcome = measure(nnti_dt, codec, size); !outcome.ok()) return outcome;
    if (size > packed_buflen) return {face::kEMSGSIZE, "the packed handle needs " + std::to_string(size) + " bytes"};
    XDR xdr;
    xdrmem_create(&xdr, packed_buf + kTag, static_cast<u_int>(size - kTag), XDR_ENCODE);
    if (!codec->code(&xdr, nnti_dt)) return {face::kEENCODE, "the handle cannot be encoded"};
    const uint32_t tag = codec->type;
    std::memcpy(packed_buf, &tag, sizeof tag);
    return {};
  });
}

NNTI_result_t NNTI_dt_unpack(const NNTI_transport_t *trans_hdl, void *nnti_dt, char *packed_buf,
                             uint64_t packed_buflen) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (nnti_dt == nullptr || packed_buf == nullptr) return face::null_argument();
    const Codec *codec = packed_buflen < kTag ? nullptr : codec_of(tag_of(packed_buf));
    if (codec == nullptr) return {face::kEDECODE, "these bytes hold no NNTI handle"};
    const Codec *wanted = codec_of(tag_of(nnti_dt));
    if (wanted != nullptr && wanted != codec)
      return {face::kEDECODE, "these bytes hold another kind of handle than the one to be filled in"};
    XDR xdr;
    const auto length = std::min<uint64_t>(packed_buflen - kTag, UINT32_MAX);
    xdrmem_create(&xdr, packed_buf + kTag, static_cast<u_int>(length), XDR_DECODE);
    if (!codec->code(&xdr, nnti_dt)) return {face::kEDECODE, "these bytes end early, or hold no handle"};
    if (codec->type == NNTI_dt_buffer) look_up(*transport, *static_cast<NNTI_buffer_t *>(nnti_dt));
    return {};
  });
}

NNTI_result_t NNTI_dt_free(const NNTI_transport_t *trans_hdl, void *nnti_dt) {
  return on_transport(trans_hdl, [&](const TransportPtr &) -> Outcome {
    if (nnti_dt == nullptr) return face::null_argument();
    const Codec *codec = codec_of(tag_of(nnti_dt));
    if (codec == nullptr) return {face::kEINVAL, "this is no NNTI handle: its datatype is not set"};
    if (codec->type == NNTI_dt_buffer && owns_segments(*static_cast<NNTI_buffer_t *>(nnti_dt))) return {};
    XDR xdr{};
    xdr.x_op = XDR_FREE;
    (void)codec->code(&xdr, nnti_dt);
    return {};
  });
}

}  // extern "C"
