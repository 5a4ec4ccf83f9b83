/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of NSSI as Trios 12 has it. Names, numbers and fields that programs use are those of Trios; lengths have 64
 * bits. docs: src/compat/trios/README.md */
#ifndef TRIOS_NSSI_TYPES_H
#define TRIOS_NSSI_TYPES_H

#include "Trios_nnti_xdr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NSSI_URL_LEN NNTI_URL_LEN
#define NSSI_HOSTNAME_LEN NNTI_HOSTNAME_LEN
#define NSSI_SHORT_REQUEST_SIZE NNTI_REQUEST_BUFFER_SIZE
#define NSSI_SHORT_RESULT_SIZE NNTI_RESULT_BUFFER_SIZE
#define DEFAULT_RPC_TIMEOUT 10000000

typedef uint64_t nssi_size;
typedef uint64_t nssi_ssize;

/* From NSSI_EDECODE on, the numbers are not NNTI's. NSSI_EPEERLOST is Nessie's: the service, or the caller, died. */
#define NSSI_RESULT(name, number, number_in_trios) NSSI_##name = number_in_trios,
typedef enum nssi_return_codes { NESSIE_RESULTS(NSSI_RESULT, NESSIE_NO_RESULT) } nssi_return_codes;
#undef NSSI_RESULT

/* As NNTI_transport_id_t. */
#define NSSI_RPC_ID(name_in_nnti, number, name) NSSI_RPC_##name = number,
typedef enum nssi_rpc_transport { NNTI_TRANSPORTS(NSSI_RPC_ID) } nssi_rpc_transport;
#undef NSSI_RPC_ID
#define NSSI_RPC_COUNT NNTI_TRANSPORT_IDS_END
#define NSSI_DEFAULT_TRANSPORT NSSI_RPC_AUTO

typedef enum nssi_rpc_encode { NSSI_RPC_XDR = 0 } nssi_rpc_encode;
#define NSSI_DEFAULT_ENCODE NSSI_RPC_XDR

/* A service, as a client sees it; at the server, itself. */
typedef struct nssi_service {
  nssi_rpc_transport transport_id;
  nssi_rpc_encode rpc_encode;
  NNTI_peer_t svc_host;
  NNTI_buffer_t req_addr; /* has a size, and a segment without memory: nobody sends there by himself */
  uint32_t req_size;
  uint32_t res_size;
  int max_reqs;                       /* the service ends after so many requests; less than 0: never */
  uint64_t progress_callback;         /* a void (*)(bool is_idle), see nssi_service_start(); 0: none */
  uint64_t progress_callback_timeout; /* ms; less than 100 is 100 */
} nssi_service;

/* What Trios sent before arguments and results: for programs that count its bytes. Nessie's own headers are others, and
 * smaller. */
typedef struct nssi_request_header {
  NNTI_transport_header_t transport_header;
  uint32_t id;
  uint32_t opcode;
  bool_t fetch_args;
  bool_t fetch_data;
  bool_t is_responseless;
  NNTI_buffer_t args_addr;
  NNTI_buffer_t data_addr;
  NNTI_buffer_t res_addr;
} nssi_request_header;
typedef struct nssi_result_header {
  NNTI_transport_header_t transport_header;
  uint32_t id;
  uint32_t opcode;
  uint32_t result_size;
  bool_t fetch_result;
  NNTI_buffer_t result_addr;
  NNTI_buffer_t result_ack_addr;
  uint32_t rc;
} nssi_result_header;

/* XDR: return 1, or 0 if the stream is too short or holds no such thing; a failed decoding changes nothing. What was
 * decoded is freed by xdr_free(). A service is encoded without its callback, which is a function of one process. */
bool_t xdr_nssi_size(XDR *xdrs, nssi_size *size) TRIOS_SYMBOL(xdr_nssi_size);
bool_t xdr_nssi_ssize(XDR *xdrs, nssi_ssize *size) TRIOS_SYMBOL(xdr_nssi_ssize);
bool_t xdr_nssi_return_codes(XDR *xdrs, nssi_return_codes *code) TRIOS_SYMBOL(xdr_nssi_return_codes);
bool_t xdr_nssi_rpc_transport(XDR *xdrs, nssi_rpc_transport *id) TRIOS_SYMBOL(xdr_nssi_rpc_transport);
bool_t xdr_nssi_rpc_encode(XDR *xdrs, nssi_rpc_encode *encode) TRIOS_SYMBOL(xdr_nssi_rpc_encode);
bool_t xdr_nssi_service(XDR *xdrs, nssi_service *service) TRIOS_SYMBOL(xdr_nssi_service);
bool_t xdr_nssi_request_header(XDR *xdrs, nssi_request_header *header) TRIOS_SYMBOL(xdr_nssi_request_header);
bool_t xdr_nssi_result_header(XDR *xdrs, nssi_result_header *header) TRIOS_SYMBOL(xdr_nssi_result_header);

#ifdef __cplusplus
}
#endif
#endif
