// SPDX-License-Identifier: BSD-3-Clause
// What the functions of nnti/nnti.h share.
#pragma once

#include "nnti/c/face.hpp"

#include <nnti/c/handles.hpp>

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

template <class Call> NNTI_result_t on_transport(const NNTI_transport_t *handle, Call call) noexcept {
  return guarded([&] { return with_transport(handle, call); });
}
/// For calls that name their transport by a buffer of ours.
template <class Call> Outcome with_owner(const NNTI_buffer_t *buffer, Call call) {
  return face::with_owner(buffer, face::find_context, [&](const auto &context) { return call(*context); });
}

template <class Call> NNTI_result_t on_owner(const NNTI_buffer_t *buffer, Call call) noexcept {
  return guarded([&] { return with_owner(buffer, call); });
}

inline BufferId id_of(const NNTI_buffer_t *buffer) { return {buffer->buffer_addr.id}; }

}  // namespace nnti::c_api
