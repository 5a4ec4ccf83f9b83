// SPDX-License-Identifier: BSD-3-Clause
// XDR procedures of Trios_nnti_xdr.h.
#include <nnti/c/xdr_parts.hpp>

#include <Trios_nnti_xdr.h>

#include <cstdlib>
#include <cstring>

namespace {

using namespace nnti::parts;

constexpr std::uint32_t kMaxSegments = 65536;

bool transport_id(XDR *xdrs, NNTI_transport_id_t &id) { return enumerator(xdrs, id, 0, NNTI_TRANSPORT_COUNT - 1); }
bool ops(XDR *xdrs, NNTI_buf_ops_t &value) { return enumerator(xdrs, value, 0, 255); }
bool result(XDR *xdrs, NNTI_result_t &value) {
  return enumerator(xdrs, value, 0, NNTI_EPEERLOST) && (value == NNTI_OK || value >= NNTI_EIO);
}
bool tag(XDR *xdrs, NNTI_datatype_t &type, NNTI_datatype_t wanted) {
  return enumerator(xdrs, type, NNTI_dt_transport, NNTI_dt_status) && type == wanted;
}

bool process(XDR *xdrs, NNTI_remote_process_t &value) {
  auto rank = static_cast<std::uint32_t>(value.NNTI_remote_process_t_u.mpi.rank);
  if (!transport_id(xdrs, value.transport_id) || !u64(xdrs, value.instance) || !u32(xdrs, rank)) return false;
  value.NNTI_remote_process_t_u.mpi.rank = static_cast<int>(rank);
  return true;
}

bool peer(XDR *xdrs, NNTI_peer_t &value) {
  return tag(xdrs, value.datatype, NNTI_dt_peer) && text(xdrs, value.url) && process(xdrs, value.peer);
}

bool addr(XDR *xdrs, NNTI_remote_addr_t &value) {
  if (!transport_id(xdrs, value.transport_id) || !u64(xdrs, value.buf) || !u64(xdrs, value.size)) return false;
  if (xdrs->x_op == XDR_DECODE && value.transport_id == NNTI_TRANSPORT_MPI)
    value.NNTI_remote_addr_t_u.mpi.size = value.size;
  return true;
}

void free_segments(NNTI_remote_addr_array_t &array) {
  std::free(array.NNTI_remote_addr_array_t_val);
  array = {0, nullptr};
}

/// Takes memory for the segments only as fast as they come: a peer may claim any number.
bool decode_segments(XDR *xdrs, NNTI_remote_addr_array_t &array, std::uint32_t count) {
  std::uint32_t room = 0;
  while (array.NNTI_remote_addr_array_t_len < count) {
    if (array.NNTI_remote_addr_array_t_len == room) {
      room = room == 0 ? 4 : 2 * room;
      void *larger = std::realloc(array.NNTI_remote_addr_array_t_val, room * sizeof(NNTI_remote_addr_t));
      if (larger == nullptr) return false;
      array.NNTI_remote_addr_array_t_val = static_cast<NNTI_remote_addr_t *>(larger);
    }
    auto &segment = array.NNTI_remote_addr_array_t_val[array.NNTI_remote_addr_array_t_len];
    segment = {};
    if (!addr(xdrs, segment)) return false;
    ++array.NNTI_remote_addr_array_t_len;
  }
  return true;
}

bool segments(XDR *xdrs, NNTI_remote_addr_array_t &array) {
  std::uint32_t count = array.NNTI_remote_addr_array_t_len;
  if (!u32(xdrs, count) || count > kMaxSegments) return false;
  if (xdrs->x_op == XDR_DECODE) return decode_segments(xdrs, array, count);
  for (std::uint32_t i = 0; i < count; ++i)
    if (array.NNTI_remote_addr_array_t_val == nullptr || !addr(xdrs, array.NNTI_remote_addr_array_t_val[i]))
      return false;
  return true;
}

bool buffer(XDR *xdrs, NNTI_buffer_t &value) {
  return tag(xdrs, value.datatype, NNTI_dt_buffer) && transport_id(xdrs, value.transport_id) &&
         peer(xdrs, value.buffer_owner) && ops(xdrs, value.ops) && u64(xdrs, value.payload_size) &&
         u64(xdrs, value.payload) && u64(xdrs, value.transport_private) && u64(xdrs, value.num_elements) &&
         segments(xdrs, value.buffer_segments);
}

void free_buffer(NNTI_buffer_t &value) { free_segments(value.buffer_segments); }

/// Without its buffer, which means nothing elsewhere, and is the application's here.
bool request(XDR *xdrs, NNTI_work_request_t &value) {
  if (xdrs->x_op == XDR_DECODE) value.reg_buf = nullptr;
  return tag(xdrs, value.datatype, NNTI_dt_work_request) && transport_id(xdrs, value.transport_id) &&
         ops(xdrs, value.ops) && result(xdrs, value.result) && u64(xdrs, value.transport_private);
}

bool status(XDR *xdrs, NNTI_status_t &value) {
  return tag(xdrs, value.datatype, NNTI_dt_status) && ops(xdrs, value.op) && result(xdrs, value.result) &&
         u64(xdrs, value.start) && u64(xdrs, value.offset) && u64(xdrs, value.length) && peer(xdrs, value.src) &&
         peer(xdrs, value.dest);
}

bool transport(XDR *xdrs, NNTI_transport_t &value) {
  return tag(xdrs, value.datatype, NNTI_dt_transport) && transport_id(xdrs, value.id) && peer(xdrs, value.me);
}

bool header(XDR *xdrs, NNTI_transport_header_t &value) {
  return u32(xdrs, value.message_magic) && u32(xdrs, value.exchange_id);
}

}  // namespace

extern "C" {

bool_t xdr_NNTI_size(XDR *xdrs, NNTI_size *size) { return whole(xdrs, size, u64); }
bool_t xdr_NNTI_ssize(XDR *xdrs, NNTI_ssize *size) { return whole(xdrs, size, u64); }
bool_t xdr_NNTI_datatype_t(XDR *xdrs, NNTI_datatype_t *type) {
  return whole<NNTI_datatype_t>(xdrs, type, [](XDR *stream, NNTI_datatype_t &value) {
    return enumerator(stream, value, NNTI_dt_transport, NNTI_dt_status);
  });
}
bool_t xdr_NNTI_transport_id_t(XDR *xdrs, NNTI_transport_id_t *id) { return whole(xdrs, id, transport_id); }
bool_t xdr_NNTI_result_t(XDR *xdrs, NNTI_result_t *value) { return whole(xdrs, value, result); }
bool_t xdr_NNTI_atomic_op_t(XDR *xdrs, NNTI_atomic_op_t *op) {
  return whole<NNTI_atomic_op_t>(
      xdrs, op, [](XDR *stream, NNTI_atomic_op_t &value) { return enumerator(stream, value, 0, NNTI_ATOMIC_FADD); });
}
bool_t xdr_NNTI_buf_ops_t(XDR *xdrs, NNTI_buf_ops_t *value) { return whole(xdrs, value, ops); }
bool_t xdr_NNTI_remote_process_t(XDR *xdrs, NNTI_remote_process_t *value) { return whole(xdrs, value, process); }
bool_t xdr_NNTI_peer_t(XDR *xdrs, NNTI_peer_t *value) { return whole(xdrs, value, peer); }
bool_t xdr_NNTI_remote_addr_t(XDR *xdrs, NNTI_remote_addr_t *value) { return whole(xdrs, value, addr); }
bool_t xdr_NNTI_remote_addr_array_t(XDR *xdrs, NNTI_remote_addr_array_t *array) {
  return whole(xdrs, array, segments, free_segments);
}
bool_t xdr_NNTI_buffer_t(XDR *xdrs, NNTI_buffer_t *value) { return whole(xdrs, value, buffer, free_buffer); }
bool_t xdr_NNTI_work_request_t(XDR *xdrs, NNTI_work_request_t *wr) { return whole(xdrs, wr, request); }
bool_t xdr_NNTI_transport_header_t(XDR *xdrs, NNTI_transport_header_t *value) { return whole(xdrs, value, header); }
bool_t xdr_NNTI_status_t(XDR *xdrs, NNTI_status_t *value) { return whole(xdrs, value, status); }
bool_t xdr_NNTI_transport_t(XDR *xdrs, NNTI_transport_t *value) { return whole(xdrs, value, transport); }

}  // extern "C"
