// SPDX-License-Identifier: BSD-3-Clause
// What the functions of nnti/nnti.h share.
#pragma once

#include "nnti/c/face.hpp"

#include <nnti/c/api.hpp>

namespace nnti::c_api {

using face::Outcome;

template <class Call> NNTI_result_t guarded(Call call) noexcept {
  return static_cast<NNTI_result_t>(face::guarded(call));
}

template <class Call> Outcome with_transport(const NNTI_transport_t *handle, Call call) {
  if (handle == nullptr) return face::null_argument();
  if (handle->datatype != NNTI_dt_transport) return face::not_open();
  auto context = face::find_context({handle->me.peer.instance});
  return context ? call(*context) : face::not_open();
}

/// For calls that name their transport by a buffer of ours.
template <class Call> Outcome with_owner(const NNTI_buffer_t *buffer, Call call) {
  if (buffer == nullptr) return face::null_argument();
  if (buffer->datatype != NNTI_dt_buffer) return {face::kEINVAL, "the buffer's handle is none; register it first"};
  const ProcessId owner{buffer->buffer_owner.peer.instance};
  if (auto context = face::find_context(owner)) return call(*context);
  if (face::was_open(owner)) return face::not_open();
  return {face::kEPERM, "the buffer is a peer's; this can only be done with one's own"};
}

inline BufferId id_of(const NNTI_buffer_t *buffer) { return {buffer->buffer_addr.id}; }
NNTI_peer_t peer_to_c(const PeerInfo &peer);
NNTI_peer_t myself(const Context &context);

}  // namespace nnti::c_api
