// SPDX-License-Identifier: BSD-3-Clause
// XDR procedures of Trios_nssi_types.h.
#include <compat/trios/nssi_service.hpp>
#include <nnti/c/xdr_parts.hpp>

#include <Trios_nssi_types.h>

#include <algorithm>
#include <iterator>

namespace {

using namespace nnti::parts;

bool return_code(XDR *xdrs, nssi_return_codes &code) {
#define NSSI_CODE(name, number, number_in_trios) NSSI_##name,
  static constexpr nssi_return_codes kCodes[] = {NESSIE_RESULTS(NSSI_CODE, NESSIE_NO_RESULT)};
#undef NSSI_CODE
  return enumerator(xdrs, code, 0, UINT32_MAX) && std::ranges::find(kCodes, code) != std::end(kCodes);
}
bool transport(XDR *xdrs, nssi_rpc_transport &id) { return enumerator(xdrs, id, 0, NSSI_RPC_COUNT - 1); }
bool encoding(XDR *xdrs, nssi_rpc_encode &value) { return enumerator(xdrs, value, 0, NSSI_RPC_XDR); }

void free_buffer(NNTI_buffer_t &buffer) {
  XDR xdr{};
  xdr.x_op = XDR_FREE;
  (void)xdr_NNTI_buffer_t(&xdr, &buffer);
}

/// A handle of a buffer, or none.
bool buffer(XDR *xdrs, NNTI_buffer_t &value) {
  bool_t is_there = value.datatype != 0;
  return xdr_bool(xdrs, &is_there) && (!is_there || xdr_NNTI_buffer_t(xdrs, &value));
}

/// The callback is a function of the process that encodes.
bool service(XDR *xdrs, nssi_service &value) {
  return transport(xdrs, value.transport_id) && encoding(xdrs, value.rpc_encode) &&
         xdr_NNTI_peer_t(xdrs, &value.svc_host) && buffer(xdrs, value.req_addr) && u32(xdrs, value.req_size) &&
         u32(xdrs, value.res_size) && xdr_int(xdrs, &value.max_reqs);
}
void free_service(nssi_service &value) {
  if (value.req_addr.buffer_segments.NNTI_remote_addr_array_t_val != &nssi::trios::no_memory)
    free_buffer(value.req_addr);
}

bool request_header(XDR *xdrs, nssi_request_header &value) {
  return xdr_NNTI_transport_header_t(xdrs, &value.transport_header) && u32(xdrs, value.id) && u32(xdrs, value.opcode) &&
         xdr_bool(xdrs, &value.fetch_args) && xdr_bool(xdrs, &value.fetch_data) &&
         xdr_bool(xdrs, &value.is_responseless) && buffer(xdrs, value.args_addr) && buffer(xdrs, value.data_addr) &&
         buffer(xdrs, value.res_addr);
}
void free_request_header(nssi_request_header &value) {
  for (auto *each : {&value.args_addr, &value.data_addr, &value.res_addr}) free_buffer(*each);
}

bool result_header(XDR *xdrs, nssi_result_header &value) {
  return xdr_NNTI_transport_header_t(xdrs, &value.transport_header) && u32(xdrs, value.id) && u32(xdrs, value.opcode) &&
         u32(xdrs, value.result_size) && xdr_bool(xdrs, &value.fetch_result) && buffer(xdrs, value.result_addr) &&
         buffer(xdrs, value.result_ack_addr) && u32(xdrs, value.rc);
}
void free_result_header(nssi_result_header &value) {
  for (auto *each : {&value.result_addr, &value.result_ack_addr}) free_buffer(*each);
}

}  // namespace

bool_t xdr_nssi_size(XDR *xdrs, nssi_size *size) { return xdr_NNTI_size(xdrs, size); }
bool_t xdr_nssi_ssize(XDR *xdrs, nssi_ssize *size) { return xdr_NNTI_ssize(xdrs, size); }
bool_t xdr_nssi_return_codes(XDR *xdrs, nssi_return_codes *code) { return whole(xdrs, code, return_code); }
bool_t xdr_nssi_rpc_transport(XDR *xdrs, nssi_rpc_transport *id) { return whole(xdrs, id, transport); }
bool_t xdr_nssi_rpc_encode(XDR *xdrs, nssi_rpc_encode *value) { return whole(xdrs, value, encoding); }
bool_t xdr_nssi_service(XDR *xdrs, nssi_service *value) { return whole(xdrs, value, service, free_service); }
bool_t xdr_nssi_request_header(XDR *xdrs, nssi_request_header *value) {
  return whole(xdrs, value, request_header, free_request_header);
}
bool_t xdr_nssi_result_header(XDR *xdrs, nssi_result_header *value) {
  return whole(xdrs, value, result_header, free_result_header);
}
