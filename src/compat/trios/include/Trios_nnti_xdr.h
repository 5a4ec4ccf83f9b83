/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of NNTI as Trios 12 has them, and their XDR procedures: names, numbers and fields that programs use are
 * those of Trios; lengths have 64 bits, URLs 512 bytes, and fields were added where Nessie needs them. Structs are
 * plain data and may be copied. */
#ifndef TRIOS_NNTI_XDR_H
#define TRIOS_NNTI_XDR_H

#include "Trios_xdr.h"

#include <nessie/codes.h>
#include <nnti/transport_ids.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* nnti/nnti.h declares functions of the same names with other parameters. So that both may live in one library, and one
 * program, the symbols of these here begin with trios_: by an assembler name, which, unlike a macro, leaves the
 * identifier itself alone. A program includes one of the two headers in each of its files. */
#define TRIOS_SYMBOL(name) __asm__("trios_" #name)

typedef uint64_t NNTI_size;
typedef uint64_t NNTI_ssize;

#define NNTI_HOSTNAME_LEN 256
#define NNTI_URL_LEN 512 /* of a URL list, with its final NUL */
#define NNTI_REQUEST_BUFFER_SIZE 1216
#define NNTI_RESULT_BUFFER_SIZE 1216

typedef enum NNTI_datatype_t {
  NNTI_dt_transport = 1111,
  NNTI_dt_peer = 1112,
  NNTI_dt_buffer = 1113,
  NNTI_dt_work_request = 1114,
  NNTI_dt_status = 1115
} NNTI_datatype_t;

/* Of 1 to 5 (NNTI_ENOTSUP), OFI and UCX reach such networks. */
#define NNTI_TRANSPORT_ID(name, number, name_in_trios) NNTI_TRANSPORT_##name = number,
typedef enum NNTI_transport_id_t { NNTI_TRANSPORTS(NNTI_TRANSPORT_ID) } NNTI_transport_id_t;
#undef NNTI_TRANSPORT_ID
#define NNTI_TRANSPORT_COUNT NNTI_TRANSPORT_IDS_END

/* NNTI_EPEERLOST is Nessie's: the peer died, left, or its connection broke. */
typedef enum NNTI_result_t { NESSIE_RESULTS(NESSIE_NNTI_RESULT, NESSIE_NNTI_RESULT) } NNTI_result_t;

typedef enum NNTI_atomic_op_t { NNTI_ATOMIC_FADD = 0 } NNTI_atomic_op_t;

/* --- where a process is: a member for each transport of Trios -------------------------------------------------------- */

typedef uint32_t NNTI_ip_addr;
typedef uint16_t NNTI_tcp_port;
typedef uint32_t NNTI_nid;
typedef uint32_t NNTI_pid;
typedef uint32_t NNTI_qp_num;
typedef uint32_t NNTI_instance_id;
typedef uint64_t NNTI_match_bits;

typedef struct NNTI_null_process_t {
  int i;
} NNTI_null_process_t;
typedef struct NNTI_portals_process_t {
  NNTI_nid nid;
  NNTI_pid pid;
} NNTI_portals_process_t;
typedef struct NNTI_ib_process_t {
  NNTI_ip_addr addr;
  NNTI_tcp_port port;
  NNTI_qp_num qpn;
} NNTI_ib_process_t;
typedef struct NNTI_gni_process_t {
  NNTI_ip_addr addr;
  NNTI_tcp_port port;
  NNTI_instance_id inst_id;
} NNTI_gni_process_t;
typedef struct NNTI_bgpdcmf_process_t {
  int xcoord, ycoord, zcoord;
  int pset_rank;
} NNTI_bgpdcmf_process_t;
typedef struct NNTI_bgqpami_process_t {
  int pset_rank;
  int taskid;
  int thrid;
} NNTI_bgqpami_process_t;
typedef struct NNTI_mpi_process_t {
  int rank;
} NNTI_mpi_process_t;
typedef struct NNTI_local_process_t {
  int i;
} NNTI_local_process_t;

typedef struct NNTI_remote_process_t {
  NNTI_transport_id_t transport_id;
  union {
    NNTI_null_process_t null;
    NNTI_portals_process_t portals;
    NNTI_ib_process_t ib;
    NNTI_gni_process_t gni;
    NNTI_bgpdcmf_process_t bgpdcmf;
    NNTI_bgqpami_process_t bgqpami;
    NNTI_mpi_process_t mpi; /* filled in for a peer over MPI alone */
    NNTI_local_process_t local;
  } NNTI_remote_process_t_u;
  uint64_t instance; /* Nessie's: names the process everywhere; two handles with the same mean the same */
} NNTI_remote_process_t;

typedef struct NNTI_peer_t {
  NNTI_datatype_t datatype;
  char url[NNTI_URL_LEN];
  NNTI_remote_process_t peer;
} NNTI_peer_t;

/* --- where memory is -------------------------------------------------------------------------------------------------- */

typedef enum NNTI_portals_indices {
  NNTI_REQ_PT_INDEX = 1,
  NNTI_RECV_PT_INDEX,
  NNTI_DATA_PT_INDEX,
  NNTI_LONG_ARGS_PT_INDEX,
  NNTI_LONG_RES_PT_INDEX
} NNTI_portals_indices;

/* What Trios' transports kept in a handle; their kinds of buffers and keys. */
typedef enum NNTI_gni_buffer_type_t {
  NNTI_GNI_RDMA_INITIATOR,
  NNTI_GNI_RDMA_TARGET,
  NNTI_GNI_SEND_SRC,
  NNTI_GNI_REQUEST_BUFFER
} NNTI_gni_buffer_type_t;
typedef enum NNTI_bgpdcmf_buffer_type_t {
  NNTI_DCMF_REQUEST_BUFFER,
  NNTI_DCMF_RESULT_BUFFER,
  NNTI_DCMF_SEND_SRC,
  NNTI_DCMF_RECEIVE_DST
} NNTI_bgpdcmf_buffer_type_t;
typedef enum NNTI_bgqpami_buffer_type_t {
  NNTI_PAMI_REQUEST_BUFFER,
  NNTI_PAMI_RESULT_BUFFER,
  NNTI_PAMI_SEND_SRC,
  NNTI_PAMI_RECEIVE_DST
} NNTI_bgqpami_buffer_type_t;
typedef struct NNTI_gni_mem_hdl_t {
  uint64_t qword1, qword2;
} NNTI_gni_mem_hdl_t;
typedef struct NNTI_bgpdcmf_memreg_hdl_t {
  unsigned int word0, word1, word2, word3;
} NNTI_bgpdcmf_memreg_hdl_t;

typedef struct NNTI_null_rdma_addr_t {
  int i;
} NNTI_null_rdma_addr_t;
typedef struct NNTI_portals_rdma_addr_t {
  NNTI_portals_indices buffer_id;
  NNTI_match_bits match_bits;
  uint64_t size;
} NNTI_portals_rdma_addr_t;
typedef struct NNTI_ib_rdma_addr_t {
  uint64_t buf;
  uint64_t size;
  uint32_t key;
  uint64_t ack_buf;
  uint32_t ack_key;
  uint64_t ack_size;
} NNTI_ib_rdma_addr_t;
typedef struct NNTI_gni_rdma_addr_t {
  uint64_t buf;
  uint64_t size;
  NNTI_gni_mem_hdl_t mem_hdl;
  uint64_t wc_addr;
  NNTI_gni_mem_hdl_t wc_mem_hdl;
  NNTI_gni_buffer_type_t type;
} NNTI_gni_rdma_addr_t;
typedef struct NNTI_bgpdcmf_rdma_addr_t {
  uint64_t buf;
  uint64_t size;
  uint32_t owner_rank;
  NNTI_bgpdcmf_buffer_type_t type;
  NNTI_bgpdcmf_memreg_hdl_t mem_hdl;
  uint64_t wc_addr;
  NNTI_bgpdcmf_memreg_hdl_t wc_mem_hdl;
} NNTI_bgpdcmf_rdma_addr_t;
typedef struct NNTI_bgqpami_rdma_addr_t {
  uint64_t buf;
  uint64_t size;
  uint32_t owner_rank;
  NNTI_bgqpami_buffer_type_t type;
  uint64_t mem_hdl;
  uint64_t wc_addr;
  uint64_t wc_mem_hdl;
} NNTI_bgqpami_rdma_addr_t;
typedef struct NNTI_mpi_rdma_addr_t {
  NNTI_match_bits cmd_tag, get_data_tag, put_data_tag;
  uint64_t size;
} NNTI_mpi_rdma_addr_t;
typedef struct NNTI_local_rdma_addr_t {
  int i;
} NNTI_local_rdma_addr_t;

/* A segment of a buffer. Nessie fills in what is Nessie's, and the size for MPI; the rest of the union is 0. */
typedef struct NNTI_remote_addr_t {
  NNTI_transport_id_t transport_id;
  union {
    NNTI_null_rdma_addr_t null;
    NNTI_portals_rdma_addr_t portals;
    NNTI_ib_rdma_addr_t ib;
    NNTI_gni_rdma_addr_t gni;
    NNTI_bgpdcmf_rdma_addr_t bgpdcmf;
    NNTI_bgqpami_rdma_addr_t bgqpami;
    NNTI_mpi_rdma_addr_t mpi; /* its size is filled in on transport MPI */
    NNTI_local_rdma_addr_t local;
  } NNTI_remote_addr_t_u;
  uint64_t buf;  /* Nessie's: its address in the owner's memory */
  uint64_t size; /* Nessie's: in bytes */
} NNTI_remote_addr_t;

typedef struct NNTI_remote_addr_array_t {
  unsigned int NNTI_remote_addr_array_t_len;
  NNTI_remote_addr_t *NNTI_remote_addr_array_t_val;
} NNTI_remote_addr_array_t;

/* --- buffers ---------------------------------------------------------------------------------------------------------- */

typedef enum NNTI_buf_ops_t {
  NNTI_BOP_LOCAL_READ = 1,
  NNTI_BOP_REMOTE_READ = 2,
  NNTI_BOP_LOCAL_WRITE = 4,
  NNTI_BOP_REMOTE_WRITE = 8,
  NNTI_BOP_WITH_EVENTS = 16, /* on a target: what peers do to it makes events here */
  NNTI_BOP_QUEUING = 32,
  NNTI_BOP_RECV_QUEUE = 64,
  NNTI_BOP_ATOMICS = 128
} NNTI_buf_ops_t;

#define NNTI_PUT_SRC ((NNTI_buf_ops_t)(NNTI_BOP_LOCAL_READ | NNTI_BOP_WITH_EVENTS))
#define NNTI_SEND_SRC ((NNTI_buf_ops_t)(NNTI_BOP_LOCAL_READ | NNTI_BOP_WITH_EVENTS))
#define NNTI_PUT_DST ((NNTI_buf_ops_t)NNTI_BOP_REMOTE_WRITE)
#define NNTI_GET_SRC ((NNTI_buf_ops_t)NNTI_BOP_REMOTE_READ)
#define NNTI_GET_DST ((NNTI_buf_ops_t)(NNTI_BOP_LOCAL_WRITE | NNTI_BOP_WITH_EVENTS))
#define NNTI_RECV_DST ((NNTI_buf_ops_t)(NNTI_BOP_REMOTE_WRITE | NNTI_BOP_WITH_EVENTS))
#define NNTI_RECV_QUEUE ((NNTI_buf_ops_t)NNTI_BOP_RECV_QUEUE)
#define NNTI_ATOMICS ((NNTI_buf_ops_t)NNTI_BOP_ATOMICS)

typedef struct NNTI_buffer_t {
  NNTI_datatype_t datatype;
  NNTI_transport_id_t transport_id;
  NNTI_peer_t buffer_owner;
  /* Of our own buffer: valid until it is unregistered. Of one that was unpacked: until NNTI_dt_free. */
  NNTI_remote_addr_array_t buffer_segments;
  NNTI_buf_ops_t ops;
  uint64_t payload_size; /* of one element, in bytes */
  uint64_t payload;      /* address of the first segment */
  uint64_t transport_private;
  uint64_t num_elements; /* Nessie's */
} NNTI_buffer_t;

typedef struct NNTI_work_request_t {
  NNTI_datatype_t datatype;
  NNTI_transport_id_t transport_id;
  NNTI_buffer_t *reg_buf;
  NNTI_buf_ops_t ops;
  NNTI_result_t result; /* once a wait has returned its completion */
  uint64_t transport_private;
} NNTI_work_request_t;

typedef struct NNTI_transport_header_t {
  uint32_t message_magic;
  uint32_t exchange_id;
} NNTI_transport_header_t;

typedef struct NNTI_status_t {
  NNTI_datatype_t datatype;
  NNTI_buf_ops_t op;
  NNTI_result_t result;
  uint64_t start;  /* address of the local buffer */
  uint64_t offset; /* where in it the data are */
  uint64_t length;
  NNTI_peer_t src;
  NNTI_peer_t dest;
} NNTI_status_t;

typedef struct NNTI_transport_t {
  NNTI_datatype_t datatype;
  NNTI_transport_id_t id;
  NNTI_peer_t me;
} NNTI_transport_t;

/* --- XDR: return 1, or 0 if the stream is too short or holds no such thing; a failed decoding changes nothing ---------- */

bool_t xdr_NNTI_size(XDR *xdrs, NNTI_size *size) TRIOS_SYMBOL(xdr_NNTI_size);
bool_t xdr_NNTI_ssize(XDR *xdrs, NNTI_ssize *size) TRIOS_SYMBOL(xdr_NNTI_ssize);
bool_t xdr_NNTI_datatype_t(XDR *xdrs, NNTI_datatype_t *type) TRIOS_SYMBOL(xdr_NNTI_datatype_t);
bool_t xdr_NNTI_transport_id_t(XDR *xdrs, NNTI_transport_id_t *id) TRIOS_SYMBOL(xdr_NNTI_transport_id_t);
bool_t xdr_NNTI_result_t(XDR *xdrs, NNTI_result_t *result) TRIOS_SYMBOL(xdr_NNTI_result_t);
bool_t xdr_NNTI_atomic_op_t(XDR *xdrs, NNTI_atomic_op_t *op) TRIOS_SYMBOL(xdr_NNTI_atomic_op_t);
bool_t xdr_NNTI_buf_ops_t(XDR *xdrs, NNTI_buf_ops_t *ops) TRIOS_SYMBOL(xdr_NNTI_buf_ops_t);
bool_t xdr_NNTI_remote_process_t(XDR *xdrs, NNTI_remote_process_t *process) TRIOS_SYMBOL(xdr_NNTI_remote_process_t);
bool_t xdr_NNTI_peer_t(XDR *xdrs, NNTI_peer_t *peer) TRIOS_SYMBOL(xdr_NNTI_peer_t);
bool_t xdr_NNTI_remote_addr_t(XDR *xdrs, NNTI_remote_addr_t *addr) TRIOS_SYMBOL(xdr_NNTI_remote_addr_t);
bool_t xdr_NNTI_remote_addr_array_t(XDR *xdrs, NNTI_remote_addr_array_t *array)
    TRIOS_SYMBOL(xdr_NNTI_remote_addr_array_t);
bool_t xdr_NNTI_buffer_t(XDR *xdrs, NNTI_buffer_t *buffer) TRIOS_SYMBOL(xdr_NNTI_buffer_t);
bool_t xdr_NNTI_work_request_t(XDR *xdrs, NNTI_work_request_t *wr) TRIOS_SYMBOL(xdr_NNTI_work_request_t);
bool_t xdr_NNTI_transport_header_t(XDR *xdrs, NNTI_transport_header_t *header)
    TRIOS_SYMBOL(xdr_NNTI_transport_header_t);
bool_t xdr_NNTI_status_t(XDR *xdrs, NNTI_status_t *status) TRIOS_SYMBOL(xdr_NNTI_status_t);
bool_t xdr_NNTI_transport_t(XDR *xdrs, NNTI_transport_t *transport) TRIOS_SYMBOL(xdr_NNTI_transport_t);

#ifdef __cplusplus
}
#endif
#endif
