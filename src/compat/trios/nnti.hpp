// SPDX-License-Identifier: BSD-3-Clause
// What the functions of Trios_nnti.h share: the transports of this process, conversions of handles.
#pragma once

#include "nnti/c/face.hpp"

#include <Trios_nnti.h>

#include <mutex>
#include <unordered_map>

namespace nnti::trios {

using face::Outcome;

template <class Call> NNTI_result_t guarded(Call call) noexcept {
  return static_cast<NNTI_result_t>(face::guarded(call));
}

/// An open transport.
struct Transport {
  std::shared_ptr<Context> context;
  NNTI_transport_t handle{};
  bool is_for_nssi = false;
  std::mutex mutex;
  /// The segments that handles of our buffers point to, by buffer.
  std::unordered_map<std::uint64_t, std::vector<NNTI_remote_addr_t>> segments;
};
using TransportPtr = std::shared_ptr<Transport>;

/// One of each kind. Null: not open.
TransportPtr find_transport(int id);
TransportPtr transport_of(ProcessId process);

/// NSSI's handles name a transport that NNTI has not opened yet.
inline NNTI_transport_t handle_of_nssi(NNTI_transport_id_t id) { return {NNTI_dt_transport, id, {}}; }
/// Opens it, for the first of them that is used.
Outcome open_for_nssi(const NNTI_transport_t &handle);
/// Closes what was opened so.
void close_for_nssi(int id);

template <class Call> Outcome with_transport(const NNTI_transport_t *handle, Call call) {
  if (handle == nullptr) return face::null_argument();
  auto transport = find_transport(handle->id);
  if (!transport && handle->datatype == NNTI_dt_transport && handle->me.datatype == 0) {
    if (auto opened = open_for_nssi(*handle); !opened.ok()) return opened;
    transport = find_transport(handle->id);
  }
  return transport ? call(transport) : face::not_open();
}

template <class Call> NNTI_result_t on_transport(const NNTI_transport_t *handle, Call call) noexcept {
  return guarded([&] { return with_transport(handle, call); });
}
/// For calls that name their transport by a buffer of ours.
template <class Call> NNTI_result_t on_owner(const NNTI_buffer_t *buffer, Call call) noexcept {
  return guarded([&] { return face::with_owner(buffer, transport_of, call); });
}

/// For calls that name it by a work request.
template <class Call> Outcome with_request(const NNTI_work_request_t *wr, Call call) {
  if (wr == nullptr) return face::null_argument();
  if (wr->datatype != NNTI_dt_work_request) return {face::kEINVAL, "the work request was never made"};
  auto transport = find_transport(wr->transport_id);
  return transport ? call(transport) : face::not_open();
}

inline BufferId id_of(const NNTI_buffer_t *buffer) { return {buffer->transport_private}; }
inline RequestId id_of(const NNTI_work_request_t *wr) { return {wr->transport_private}; }

BufferHandle handle_of(const NNTI_buffer_t &buffer);
NNTI_peer_t peer_of(const Transport &transport, ProcessId process, std::string_view url);
NNTI_peer_t peer_of(const Transport &transport, const PeerInfo *peer);

/// Whether a wait must look for signals now and then.
bool catches_signals();

/// Fills in the work request of an operation on `buffer` that was started.
void fill(NNTI_work_request_t *wr, const Transport &transport, const NNTI_buffer_t *buffer, NNTI_buf_ops_t ops,
          RequestId request);

}  // namespace nnti::trios
