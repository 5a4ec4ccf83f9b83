/* SPDX-License-Identifier: BSD-3-Clause */
/* NNTI, the Network Transport Interface, in C: section 4.1 of the Nessie paper. C++ programs may prefer nnti/nnti.hpp.
 *
 * A process opens a transport (NNTI_init), connects to peers by URL, registers memory for a purpose, and moves data:
 * NNTI_send moves a whole buffer and makes an event at both ends; NNTI_put and NNTI_get move part of a buffer and make
 * an event at the initiator, and at the target only where its registration asks for it. Every operation is
 * asynchronous: the call starts it, NNTI_wait on the local buffer returns its completion.
 *
 * Handles are plain data. They may be copied, and NNTI_peer_t and NNTI_buffer_t may be sent to other processes inside
 * messages (xdr_NNTI_buffer_t, or byte by byte between machines of one kind): the buffer of a peer that arrived in a
 * message is a valid destination of NNTI_put and source of NNTI_get. Nothing in a handle is trusted: a forged, outdated
 * or finished handle gives an error, never a crash.
 *
 * Threads: every function may be called from any thread at any time; several threads may wait at once, for the same
 * buffer or for different ones. One lock per transport.
 * Progress: a process takes part in what its peers do (accepts connections and messages, serves puts and gets) while it
 * is inside NNTI_wait, NNTI_waitany, NNTI_waitall or NNTI_connect. Within these, the events of all buffers are
 * processed, whichever buffer is waited for.
 *
 * Errors: every function returns NNTI_OK or a code of NNTI_result_t. A call that returns an error has changed nothing
 * and leaves its outputs untouched, except where said. nnti_last_error() has a sentence that says more.
 */
#ifndef NNTI_NNTI_H
#define NNTI_NNTI_H

#include <nessie/codes.h>
#include <nnti/transport_ids.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NNTI_URL_LEN 512 /* of a URL list, with its final NUL */
#define NNTI_HOSTNAME_LEN 256

/* Which transports to open: NNTI_TRANSPORT_SHM, NNTI_TRANSPORT_AUTO, … What does not exist here: NNTI_ENOTSUP. */
#define NNTI_TRANSPORT_ID(name, number, name_in_trios) NNTI_TRANSPORT_##name = number,
typedef enum NNTI_transport_id_t { NNTI_TRANSPORTS(NNTI_TRANSPORT_ID) } NNTI_transport_id_t;
#undef NNTI_TRANSPORT_ID
#define NNTI_TRANSPORT_COUNT NNTI_TRANSPORT_IDS_END

#define NNTI_DEFAULT_TRANSPORT NNTI_TRANSPORT_AUTO

/* NNTI_OK (0), or what is wrong (numbers from 1001: nessie/codes.h):
 *   NNTI_EIO        the network or the system failed
 *   NNTI_EMSGSIZE   the message is larger than its destination; or the text larger than its buffer
 *   NNTI_ECANCELED  the peer was disconnected, the buffer unregistered, or the transport closed
 *   NNTI_ETIMEDOUT  the time passed; nothing was taken, the operation goes on and can be waited for again
 *   NNTI_EINVAL     a bad argument; nothing was changed
 *   NNTI_ENOENT     the buffer, peer or queue does not exist, or does not exist any more
 *   NNTI_ENOTSUP    this machine or transport cannot do it
 *   NNTI_ENOTINIT   the transport is not open (never initialised, or closed by NNTI_fini)
 *   NNTI_EPERM      refused: wrong credential, or the buffer's purpose does not allow it
 *   NNTI_EINTR      NNTI_interrupt was called; what was waited for goes on
 *   NNTI_EAGAIN     too much is queued; wait for a completion and try again
 *   NNTI_EDECODE    the peer sent what cannot be decoded
 *   NNTI_EPEERLOST  the peer died, left, or its connection broke
 * and NNTI_ENOMEM. The others are there for programs that name them: _EEXIST, _EBADRPC, _EWOULDBLOCK, _EDROPPED,
 * _EENCODE. */
typedef enum NNTI_result_t { NESSIE_RESULTS(NESSIE_NNTI_RESULT, NESSIE_NNTI_RESULT) } NNTI_result_t;

typedef enum NNTI_datatype_t {
  NNTI_dt_transport = 1111,
  NNTI_dt_peer = 1112,
  NNTI_dt_buffer = 1113,
  NNTI_dt_work_request = 1114,
  NNTI_dt_status = 1115
} NNTI_datatype_t;

/* What may be done with a buffer. The bits may be or-ed; a buffer with several purposes is fine. */
typedef enum NNTI_buf_ops_bits_t {
  NNTI_BOP_LOCAL_READ = 1,
  NNTI_BOP_REMOTE_READ = 2,
  NNTI_BOP_LOCAL_WRITE = 4,
  NNTI_BOP_REMOTE_WRITE = 8,
  NNTI_BOP_WITH_EVENTS = 16, /* on a target: puts and gets by peers make events here */
  NNTI_BOP_QUEUING = 32,
  NNTI_BOP_RECV_QUEUE = 64,
  NNTI_BOP_ATOMICS = 128
} NNTI_buf_ops_bits_t;
typedef uint32_t NNTI_buf_ops_t;

/* The purposes of the paper. Initiators: */
#define NNTI_SEND_SRC ((NNTI_buf_ops_t)(NNTI_BOP_LOCAL_READ | NNTI_BOP_WITH_EVENTS)) /* the message of NNTI_send */
#define NNTI_PUT_SRC ((NNTI_buf_ops_t)(NNTI_BOP_LOCAL_READ | NNTI_BOP_WITH_EVENTS))  /* the source of NNTI_put */
#define NNTI_GET_DST ((NNTI_buf_ops_t)(NNTI_BOP_LOCAL_WRITE | NNTI_BOP_WITH_EVENTS)) /* the destination of NNTI_get */
/* Targets: */
#define NNTI_RECV_DST \
  ((NNTI_buf_ops_t)(NNTI_BOP_REMOTE_WRITE | NNTI_BOP_WITH_EVENTS)) /* receives one message at a time */
#define NNTI_PUT_DST ((NNTI_buf_ops_t)NNTI_BOP_REMOTE_WRITE)
#define NNTI_GET_SRC ((NNTI_buf_ops_t)NNTI_BOP_REMOTE_READ)
/* Receives messages, each into the next of its equal elements, wrapping round. */
#define NNTI_RECV_QUEUE ((NNTI_buf_ops_t)NNTI_BOP_RECV_QUEUE)
/* Its 64-bit words are targets of peers' NNTI_fetch_add and NNTI_compare_swap. */
#define NNTI_ATOMICS ((NNTI_buf_ops_t)NNTI_BOP_ATOMICS)

/* Where a peer's process is. */
typedef struct NNTI_remote_process_t {
  uint64_t instance; /* names the peer's transport, in all processes */
  uint64_t local_id; /* names our connection to it; means nothing in another process */
} NNTI_remote_process_t;

/* A peer. Two handles mean the same peer if peer.instance is the same. */
typedef struct NNTI_peer_t {
  NNTI_datatype_t datatype;
  char url[NNTI_URL_LEN]; /* where it can be reached; empty if it does not listen */
  NNTI_remote_process_t peer;
} NNTI_peer_t;

/* How to reach a buffer's memory. Transport-private. */
typedef struct NNTI_remote_addr_t {
  uint64_t id;            /* names the registration; unguessable; dies with it */
  uint64_t described_for; /* instance for which the following hold; 0: they are asked for at the first access */
  uint64_t key;
  uint64_t address;
  uint64_t size_bytes;
  uint64_t location;
  uint32_t slot;
  uint32_t rights;
} NNTI_remote_addr_t;

/* A registered buffer, one's own or a peer's. */
typedef struct NNTI_buffer_t {
  NNTI_datatype_t datatype;
  NNTI_transport_id_t transport_id;
  NNTI_peer_t buffer_owner;
  NNTI_buf_ops_t ops;
  uint64_t payload_size; /* of one element, in bytes */
  uint64_t num_elements;
  uint64_t payload; /* its address in the owner's memory */
  NNTI_remote_addr_t buffer_addr;
} NNTI_buffer_t;

#define NNTI_BUFFER_C_POINTER(b) ((char *)(uintptr_t)(b)->payload)
#define NNTI_BUFFER_SIZE(b) ((b)->payload_size)

/* An open transport. */
typedef struct NNTI_transport_t {
  NNTI_datatype_t datatype;
  NNTI_transport_id_t id;
  NNTI_peer_t me;
} NNTI_transport_t;

/* A completion. */
typedef struct NNTI_status_t {
  NNTI_datatype_t datatype;
  NNTI_buf_ops_t op; /* what completed: the purpose in which the buffer took part */
  NNTI_result_t result;
  uint64_t start;   /* address of the buffer that was waited for */
  uint64_t offset;  /* where in it the data are, in bytes */
  uint64_t length;  /* how many bytes */
  NNTI_peer_t src;  /* where the data came from */
  NNTI_peer_t dest; /* where they went to */
} NNTI_status_t;

/* --- transports ---------------------------------------------------------------------------------------------------- */

/* Opens a transport. `my_url` is NULL, or asks for where to listen: "ofi://10.0.0.1", "ofi://10.0.0.1?provider=tcp".
 * Settings and the job's credential are read from the environment (docs/configuration.md). Each call opens a transport
 * of its own, to be closed by NNTI_fini.
 *   NNTI_EINVAL   `trans_hdl` is NULL, `trans_id` no transport, or `my_url` or a setting does not parse
 *   NNTI_ENOTSUP  this machine, or Nessie, does not have the transport
 *   NNTI_ENOMEM, NNTI_EIO */
NNTI_result_t NNTI_init(const NNTI_transport_id_t trans_id, const char *my_url, NNTI_transport_t *trans_hdl);

/* Writes the URL, or list of URLs joined by ';', at which this transport can be reached, with a final NUL.
 *   NNTI_EMSGSIZE  it needs more than `maxlen` bytes; NNTI_URL_LEN is always enough
 *   NNTI_EINVAL    a NULL;  NNTI_ENOTINIT */
NNTI_result_t NNTI_get_url(const NNTI_transport_t *trans_hdl, char *url, const uint64_t maxlen);

/* Closes the transport: gives up its peers, unregisters its buffers. Operations in progress end; threads that wait
 * return NNTI_ECANCELED; when NNTI_fini returns, no peer reaches this process's memory any more.
 *   NNTI_EINVAL  a NULL;  NNTI_ENOTINIT  it is closed already */
NNTI_result_t NNTI_fini(const NNTI_transport_t *trans_hdl);

/* --- peers --------------------------------------------------------------------------------------------------------- */

/* Connects to the process at `url` (a URL or a list of them; the fastest transport that reaches it is taken), proving
 * the job's credential both ways, within `timeout` milliseconds (-1: however long it takes; 0: not at all, so only a
 * peer that is connected already is found). A peer that is connected already, by either side, is returned as it is.
 * The peer must be making progress (see above). Other calls on this transport wait meanwhile.
 *   NNTI_EINVAL     a NULL, or a URL that does not parse
 *   NNTI_ENOTSUP    no transport of ours reaches it; ofi and ucx do not reach this process itself
 *   NNTI_EPERM      the credentials differ
 *   NNTI_ETIMEDOUT  no answer
 *   NNTI_EPEERLOST  nobody listens there, or it closed the connection;  NNTI_ENOTINIT */
NNTI_result_t NNTI_connect(const NNTI_transport_t *trans_hdl, const char *url, const int timeout,
                           NNTI_peer_t *peer_hdl);

/* Gives the peer up. Operations in progress with it complete with NNTI_ECANCELED; at the peer, with NNTI_EPEERLOST.
 *   NNTI_ENOENT  it is not connected (any more);  NNTI_EINVAL  a NULL;  NNTI_ENOTINIT */
NNTI_result_t NNTI_disconnect(const NNTI_transport_t *trans_hdl, NNTI_peer_t *peer_hdl);

/* Makes all threads that wait on this transport return NNTI_EINTR; if there is none, the next that would wait.
 *   NNTI_EINVAL  a NULL;  NNTI_ENOTINIT */
NNTI_result_t NNTI_interrupt(const NNTI_transport_t *trans_hdl);

/* --- memory -------------------------------------------------------------------------------------------------------- */

/* Registers `element_size` * `num_elements` bytes at `buffer`, which must stay mapped until they are unregistered, for
 * the purposes `ops`. If `peer` is given, only that peer may use the buffer, and the handle that is sent to it carries
 * all it needs; with NULL, every peer may, and asks us for the rest when it first uses it.
 * A transport has at most one receive queue that messages without a destination go to: the first registered.
 *   NNTI_EINVAL  a NULL; a size of 0, or larger than memory; `ops` without a purpose, with bits that are not defined,
 *                or NNTI_RECV_QUEUE together with other purposes
 *   NNTI_ENOENT  `peer` is not connected
 *   NNTI_ENOTSUP the transport cannot register this memory
 *   NNTI_ENOMEM, NNTI_EIO, NNTI_ENOTINIT */
NNTI_result_t NNTI_register_memory(const NNTI_transport_t *trans_hdl, char *buffer, const uint64_t element_size,
                                   const uint64_t num_elements, const NNTI_buf_ops_t ops, const NNTI_peer_t *peer,
                                   NNTI_buffer_t *reg_buf);

/* As NNTI_register_memory, one element that is made of several pieces of memory, in this order; no NNTI_RECV_QUEUE.
 * NNTI_EINVAL also: no segments, more than 65,536, or an empty one. */
NNTI_result_t NNTI_register_segments(const NNTI_transport_t *trans_hdl, char **segments,
                                     const uint64_t *segment_lengths, const uint64_t num_segments,
                                     const NNTI_buf_ops_t ops, const NNTI_peer_t *peer, NNTI_buffer_t *reg_buf);

/* As NNTI_register_memory, for memory of the transport's own (zeroed; NNTI_BUFFER_C_POINTER), until NNTI_free. Peers on
 * the same node can map it. */
NNTI_result_t NNTI_alloc(const NNTI_transport_t *trans_hdl, const uint64_t element_size, const uint64_t num_elements,
                         const NNTI_buf_ops_t ops, const NNTI_peer_t *peer, NNTI_buffer_t *reg_buf);

/* As NNTI_unregister_memory; the memory of NNTI_alloc is gone. */
NNTI_result_t NNTI_free(NNTI_buffer_t *reg_buf);

/* Withdraws the buffer: its handles, here and at peers, are dead; no new transfer touches the memory. Threads that wait
 * for it return NNTI_ECANCELED; completions not yet taken are dropped.
 *   NNTI_EAGAIN  an operation on it is in progress, or a large message is just coming in: wait for it, or disconnect
 *                the peer
 *   NNTI_ENOENT  it is not registered (any more);  NNTI_EPERM  it is a peer's;  NNTI_EINVAL  a NULL;  NNTI_ENOTINIT */
NNTI_result_t NNTI_unregister_memory(NNTI_buffer_t *reg_buf);

/* --- data ---------------------------------------------------------------------------------------------------------- */
/* These start an operation and return. The local buffer's memory is lent to it until its completion has been taken by
 * NNTI_wait. Operations on one buffer complete in any order; each makes exactly one completion. Common errors:
 *   NNTI_EINVAL    a NULL; no such length or offset in the local buffer or in the peer's
 *   NNTI_EPERM     a buffer is not registered for this purpose, or the local one is a peer's
 *   NNTI_ENOENT    the local buffer is not registered (any more)
 *   NNTI_EPEERLOST the peer is not connected (any more)
 *   NNTI_EAGAIN    too much is queued for this peer;  NNTI_ENOTINIT
 * Errors that only the peer can know are the completion's result: NNTI_ENOENT (its buffer is gone), NNTI_EPERM (the
 * buffer went since it was last used, or the handle is forged, or for another peer), NNTI_EMSGSIZE, NNTI_EPEERLOST (it
 * died; a destination holds no usable data), NNTI_ECANCELED. */

/* Sends the whole buffer `msg_hdl` (NNTI_SEND_SRC) to `dest_hdl` (NNTI_RECV_DST or NNTI_RECV_QUEUE), or, with NULL, to
 * the peer's receive queue. Makes an event at both ends. Completes when the message is in its destination; while that
 * is full (see NNTI_wait) the message stays pending here and none is lost. The messages of one sender to one
 * destination arrive in the order in which they were sent. NNTI_EMSGSIZE: larger than the destination's element. As
 * a completion, NNTI_EAGAIN: more than 65,536 messages are pending for the destination already. */
NNTI_result_t NNTI_send(const NNTI_peer_t *peer_hdl, const NNTI_buffer_t *msg_hdl, const NNTI_buffer_t *dest_hdl);

/* Copies `src_length` bytes at `src_offset` of our buffer (NNTI_PUT_SRC) to `dest_offset` of a peer's (NNTI_PUT_DST).
 * Complete: the peer can read them; they are visible to it before any message that we send afterwards. */
NNTI_result_t NNTI_put(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset);

/* Copies `src_length` bytes at `src_offset` of a peer's buffer (NNTI_GET_SRC) to `dest_offset` of ours (NNTI_GET_DST).
 * Complete: the bytes can be read here. */
NNTI_result_t NNTI_get(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset);

/* Puts `src_length` bytes of our buffer, from i * src_length on, to the start of dest_buffer_list[i], for each i; one
 * completion, when all are complete. Its result is NNTI_OK, or the first that is another. */
NNTI_result_t NNTI_scatter(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_length,
                           const NNTI_buffer_t **dest_buffer_list, const uint64_t dest_count);

/* Gets `src_length` bytes from the start of src_buffer_list[i] to i * src_length of our buffer, likewise. */
NNTI_result_t NNTI_gather(const NNTI_buffer_t **src_buffer_list, const uint64_t src_length, const uint64_t src_count,
                          const NNTI_buffer_t *dest_buffer_hdl);

/* Adds `operand` to the 64-bit word at `target_offset` of a peer's buffer (NNTI_ATOMICS), atomically and exactly once.
 * Complete: its former value is in the word at `result_offset` of ours (NNTI_GET_DST). NNTI_EINVAL also: a word is not
 * aligned to 8 bytes. */
NNTI_result_t NNTI_fetch_add(const NNTI_buffer_t *target_hdl, const uint64_t target_offset, const int64_t operand,
                             const NNTI_buffer_t *result_hdl, const uint64_t result_offset);

/* Sets the word to `desired` if it is `expected`; it was, if the former value says so. */
NNTI_result_t NNTI_compare_swap(const NNTI_buffer_t *target_hdl, const uint64_t target_offset, const int64_t expected,
                                const int64_t desired, const NNTI_buffer_t *result_hdl, const uint64_t result_offset);

/* Takes back what was started from our buffer and has not taken effect: its completion is NNTI_ECANCELED. What cannot
 * be stopped any more completes as if nothing had happened. NNTI_ENOENT, NNTI_EPERM, NNTI_EINVAL, NNTI_ENOTINIT. */
NNTI_result_t NNTI_cancel(const NNTI_buffer_t *reg_buf);

/* --- completions --------------------------------------------------------------------------------------------------- */

/* Takes the oldest completion of our buffer `reg_buf` whose purpose is in `remote_op` (0: any), waiting for it up to
 * `timeout` milliseconds (-1: for ever; 0: not at all). Returns the completion's result, and writes `status`, failed or
 * not. When no completion is taken `status` is untouched and the return value is one of
 *   NNTI_ETIMEDOUT  none within the time
 *   NNTI_EINTR      NNTI_interrupt was called
 *   NNTI_EINVAL     a NULL, a negative timeout that is not -1, or the buffer is never used for `remote_op`
 *   NNTI_ENOENT     the buffer is not registered (any more);  NNTI_EPERM  it is a peer's
 *   NNTI_ECANCELED  it was unregistered, or the transport closed, meanwhile;  NNTI_ENOTINIT
 * A message that arrived (NNTI_RECV_QUEUE: at start + offset, in its element; NNTI_RECV_DST: at offset 0) is the
 * calling thread's until that thread next waits for the same buffer, or ends; only then another message may take its
 * place. */
NNTI_result_t NNTI_wait(const NNTI_buffer_t *reg_buf, const NNTI_buf_ops_t remote_op, const int timeout,
                        NNTI_status_t *status);

/* As NNTI_wait for whichever of several buffers has a completion first; `which` tells the index. NULL entries are
 * skipped. NNTI_EINVAL also: no buffer in the list, buffers of different transports, a buffer named twice. */
NNTI_result_t NNTI_waitany(const NNTI_buffer_t **buf_list, const uint32_t buf_count, const NNTI_buf_ops_t remote_op,
                           const int timeout, uint32_t *which, NNTI_status_t *status);

/* Waits until every buffer of the list has a completion, then takes one of each, status[i] for buf_list[i]. Returns
 * NNTI_OK, or the first result in the list that is another. After NNTI_ETIMEDOUT none was taken. Otherwise as
 * NNTI_waitany. */
NNTI_result_t NNTI_waitall(const NNTI_buffer_t **buf_list, const uint32_t buf_count, const NNTI_buf_ops_t remote_op,
                           const int timeout, NNTI_status_t **status);

/* --- text and XDR -------------------------------------------------------------------------------------------------- */

/* "NNTI_ETIMEDOUT", or "unknown NNTI result". The string lives for ever. */
const char *nnti_err_str(const int rc);

/* A sentence about the last error that an NNTI function returned in this thread; valid until the next error here. */
const char *nnti_last_error(void);

/* XDR procedures (xdrproc_t of libtirpc), for handles inside the arguments and results of remote procedures. Return 1,
 * or 0 if the stream is too short or holds no handle. They allocate nothing. */
struct __rpc_xdr;
int xdr_NNTI_peer_t(struct __rpc_xdr *xdrs, NNTI_peer_t *peer);
int xdr_NNTI_buffer_t(struct __rpc_xdr *xdrs, NNTI_buffer_t *buffer);

#ifdef __cplusplus
}
#endif
#endif
