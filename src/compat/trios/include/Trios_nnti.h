/* SPDX-License-Identifier: BSD-3-Clause */
/* NNTI as Trios 12 has it: with work requests. Programs written for Trios compile unchanged; what they find is Nessie's
 * engine, over every transport that this machine has. docs: src/compat/trios/README.md. nnti/nnti.h is the paper's
 * older interface; a file includes one of the two.
 *
 * Each process has one instance of each transport. Every function may be called by any thread at any time; any number
 * of threads may wait at once. A process takes part in what its peers do while one of its threads is in a call that
 * waits or connects. Lengths have 64 bits. Where Trios said NNTI_ENOTSUP, ours works, on each transport.
 *
 * Errors: a call that returns an error has changed nothing, except that a wait writes its result into `status`.
 *   NNTI_EINVAL     a NULL; a size of 0; offset and length outside a buffer; a URL that does not parse; a timeout below
 *                   -1; ops that contradict themselves
 *   NNTI_EPERM      a buffer is not registered for this purpose, or is a peer's; the credentials differ
 *   NNTI_ENOENT     a buffer, peer, or work request does not exist (any more)
 *   NNTI_EPEERLOST  the peer is not connected (any more)
 *   NNTI_ENOTSUP    this machine does not have the transport; nnti_last_error() lists those that it has
 *   NNTI_EMSGSIZE   the message is larger than its destination; or the text than its buffer
 *   NNTI_EAGAIN     too much is queued for a peer, or operations are in progress
 *   NNTI_ENOTINIT   NNTI_init was not called, or NNTI_fini was
 * nnti_last_error() has a sentence that says more. */
#ifndef TRIOS_NNTI_H
#define TRIOS_NNTI_H

#include "Trios_config.h"
#include "Trios_nnti_xdr.h"

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NNTI_DEFAULT_TRANSPORT NNTI_TRANSPORT_AUTO

typedef NNTI_result_t (*NNTI_callback_fn_t)(const NNTI_transport_t *trans_hdl, const uint64_t local_atomic,
                                            void *context);

/* --- transports and peers --------------------------------------------------------------------------------------------- */

/* Opens a transport; one that is open already is returned as it is. `my_url` (may be NULL) asks for where to listen;
 * URLs of Trios' own transports ("ib://host", "ptl://-1,128", ...) mean nothing here and are passed over. */
NNTI_result_t NNTI_init(const NNTI_transport_id_t trans_id, const char *my_url, NNTI_transport_t *trans_hdl)
    TRIOS_SYMBOL(NNTI_init);
/* The list of URLs, joined by ';', at which this process can be reached; NNTI_URL_LEN bytes are always enough. */
NNTI_result_t NNTI_get_url(const NNTI_transport_t *trans_hdl, char *url, const uint64_t maxlen)
    TRIOS_SYMBOL(NNTI_get_url);
/* Ends all waits with NNTI_ECANCELED, gives up peers and buffers. */
NNTI_result_t NNTI_fini(const NNTI_transport_t *trans_hdl) TRIOS_SYMBOL(NNTI_fini);
/* `timeout` in ms: -1 for ever; 0: only a peer that is connected already. */
NNTI_result_t NNTI_connect(const NNTI_transport_t *trans_hdl, const char *url, const int timeout, NNTI_peer_t *peer_hdl)
    TRIOS_SYMBOL(NNTI_connect);
NNTI_result_t NNTI_disconnect(const NNTI_transport_t *trans_hdl, NNTI_peer_t *peer_hdl) TRIOS_SYMBOL(NNTI_disconnect);

/* --- memory ----------------------------------------------------------------------------------------------------------- */

/* NNTI_RECV_QUEUE buffers come from NNTI_alloc only. The first is where messages without a destination go. */
NNTI_result_t NNTI_alloc(const NNTI_transport_t *trans_hdl, const uint64_t element_size, const uint64_t num_elements,
                         const NNTI_buf_ops_t ops, NNTI_buffer_t *reg_buf) TRIOS_SYMBOL(NNTI_alloc);
NNTI_result_t NNTI_free(NNTI_buffer_t *reg_buf) TRIOS_SYMBOL(NNTI_free);
NNTI_result_t NNTI_register_memory(const NNTI_transport_t *trans_hdl, char *buffer, const uint64_t element_size,
                                   const uint64_t num_elements, const NNTI_buf_ops_t ops, NNTI_buffer_t *reg_buf)
    TRIOS_SYMBOL(NNTI_register_memory);
NNTI_result_t NNTI_register_segments(const NNTI_transport_t *trans_hdl, char **segments,
                                     const uint64_t *segment_lengths, const uint64_t num_segments,
                                     const NNTI_buf_ops_t ops, NNTI_buffer_t *reg_buf)
    TRIOS_SYMBOL(NNTI_register_segments);
/* NNTI_EAGAIN: an operation on the buffer is in progress. */
NNTI_result_t NNTI_unregister_memory(NNTI_buffer_t *reg_buf) TRIOS_SYMBOL(NNTI_unregister_memory);

/* --- handles in messages ---------------------------------------------------------------------------------------------- */

/* `nnti_dt` is an NNTI_transport_t, _peer_t, _buffer_t, _work_request_t or _status_t. Packed: its datatype in four
 * bytes of this machine's order, then XDR. NNTI_dt_unpack takes the type from the packed bytes, which a peer wrote: set
 * nnti_dt's datatype before to insist on one (NNTI_EDECODE). A work request is packed without its buffer. NNTI_dt_free
 * frees what unpacking allocated. NNTI_EMSGSIZE, NNTI_EENCODE, NNTI_EDECODE. */
NNTI_result_t NNTI_dt_sizeof(const NNTI_transport_t *trans_hdl, void *nnti_dt, uint64_t *packed_len)
    TRIOS_SYMBOL(NNTI_dt_sizeof);
NNTI_result_t NNTI_dt_pack(const NNTI_transport_t *trans_hdl, void *nnti_dt, char *packed_buf,
                           const uint64_t packed_buflen) TRIOS_SYMBOL(NNTI_dt_pack);
NNTI_result_t NNTI_dt_unpack(const NNTI_transport_t *trans_hdl, void *nnti_dt, char *packed_buf, uint64_t packed_buflen)
    TRIOS_SYMBOL(NNTI_dt_unpack);
NNTI_result_t NNTI_dt_free(const NNTI_transport_t *trans_hdl, void *nnti_dt) TRIOS_SYMBOL(NNTI_dt_free);

/* --- operations: each fills in `wr`, by which its completion is waited for --------------------------------------------- */

/* Sends the whole buffer to `dest_hdl`, or, with NULL or a receive queue of old, to the peer's receive queue. Complete:
 * it is there. While that is full the message stays pending here and none is lost. */
NNTI_result_t NNTI_send(const NNTI_peer_t *peer_hdl, const NNTI_buffer_t *msg_hdl, const NNTI_buffer_t *dest_hdl,
                        NNTI_work_request_t *wr) TRIOS_SYMBOL(NNTI_send);
NNTI_result_t NNTI_put(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset, NNTI_work_request_t *wr)
    TRIOS_SYMBOL(NNTI_put);
NNTI_result_t NNTI_get(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset, NNTI_work_request_t *wr)
    TRIOS_SYMBOL(NNTI_get);
/* `src_length` bytes for each destination: the i-th from i * src_length of the source. */
NNTI_result_t NNTI_scatter(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_length,
                           const NNTI_buffer_t **dest_buffer_list, const uint64_t dest_count, NNTI_work_request_t *wr)
    TRIOS_SYMBOL(NNTI_scatter);
/* `src_length` bytes from each source: the i-th to i * src_length of the destination. */
NNTI_result_t NNTI_gather(const NNTI_buffer_t **src_buffer_list, const uint64_t src_length, const uint64_t src_count,
                          const NNTI_buffer_t *dest_buffer_hdl, NNTI_work_request_t *wr) TRIOS_SYMBOL(NNTI_gather);

/* --- atomic variables: 512 of them, or TRIOS_NNTI_MIN_ATOMIC_VARS if that is set and more -------------------------------- */

/* `cbfunc` (NULL: no more) runs after each atomic operation of a peer on `local_atomic`, in a thread that waits. */
NNTI_result_t NNTI_atomic_set_callback(const NNTI_transport_t *trans_hdl, const uint64_t local_atomic,
                                       NNTI_callback_fn_t cbfunc, void *context) TRIOS_SYMBOL(NNTI_atomic_set_callback);
NNTI_result_t NNTI_atomic_read(const NNTI_transport_t *trans_hdl, const uint64_t local_atomic, int64_t *value)
    TRIOS_SYMBOL(NNTI_atomic_read);
/* The former value of the peer's variable goes to our variable `result_atomic`. */
NNTI_result_t NNTI_atomic_fop(const NNTI_transport_t *trans_hdl, const NNTI_peer_t *peer_hdl,
                              const uint64_t target_atomic, const uint64_t result_atomic, const int64_t operand,
                              const NNTI_atomic_op_t op, NNTI_work_request_t *wr) TRIOS_SYMBOL(NNTI_atomic_fop);
NNTI_result_t NNTI_atomic_cswap(const NNTI_transport_t *trans_hdl, const NNTI_peer_t *peer_hdl,
                                const uint64_t target_atomic, const uint64_t result_atomic,
                                const int64_t compare_operand, const int64_t swap_operand, NNTI_work_request_t *wr)
    TRIOS_SYMBOL(NNTI_atomic_cswap);

/* --- work requests ---------------------------------------------------------------------------------------------------- */

/* For what peers do to our buffer: a wait takes the oldest event, and its element stays the reader's until the work
 * request is cleared (to wait again) or destroyed. The work request of an operation ends with its completion. */
NNTI_result_t NNTI_create_work_request(NNTI_buffer_t *reg_buf, NNTI_work_request_t *wr)
    TRIOS_SYMBOL(NNTI_create_work_request);
NNTI_result_t NNTI_clear_work_request(NNTI_work_request_t *wr) TRIOS_SYMBOL(NNTI_clear_work_request);
NNTI_result_t NNTI_destroy_work_request(NNTI_work_request_t *wr) TRIOS_SYMBOL(NNTI_destroy_work_request);
/* The wait that follows completes with NNTI_ECANCELED, unless the operation has taken effect already. */
NNTI_result_t NNTI_cancel(NNTI_work_request_t *wr) TRIOS_SYMBOL(NNTI_cancel);
NNTI_result_t NNTI_cancelall(NNTI_work_request_t **wr_list, const uint32_t wr_count) TRIOS_SYMBOL(NNTI_cancelall);
/* All threads that wait return NNTI_EINTR; if there is none, the next that would wait. */
NNTI_result_t NNTI_interrupt(const NNTI_transport_t *trans_hdl) TRIOS_SYMBOL(NNTI_interrupt);

/* `timeout` in ms: -1 for ever, 0 not at all. Returns the completion's result. NNTI_ETIMEDOUT and NNTI_EINTR leave the
 * work request as it is: it can be waited for again. NNTI_ECANCELED: see NNTI_cancel; or trios_exit_now(). */
NNTI_result_t NNTI_wait(NNTI_work_request_t *wr, const int timeout, NNTI_status_t *status) TRIOS_SYMBOL(NNTI_wait);
/* Whichever is first. NULL entries are passed over. */
NNTI_result_t NNTI_waitany(NNTI_work_request_t **wr_list, const uint32_t wr_count, const int timeout, uint32_t *which,
                           NNTI_status_t *status) TRIOS_SYMBOL(NNTI_waitany);
/* All of them, or none. `status` points to as many pointers; those of NULL entries may be NULL. Returns NNTI_OK, or the
 * first result that is another. */
NNTI_result_t NNTI_waitall(NNTI_work_request_t **wr_list, const uint32_t wr_count, const int timeout,
                           NNTI_status_t **status) TRIOS_SYMBOL(NNTI_waitall);

/* A sentence about the last error in this thread. */
const char *nnti_last_error(void);

#define NNTI_TRANSPORT_INITIALIZED(t)
#define NNTI_BUFFER_FULL(b)
#define NNTI_BUFFER_EMPTY(b)
#define NNTI_BUFFER_C_POINTER(b) ((char *)(b)->payload)
#define NNTI_BUFFER_SIZE(b) (b)->payload_size
#define NNTI_INIT_BUFFER(b) memset((b), 0, sizeof *(b));
#define NNTI_INIT_PEER(p) memset((p), 0, sizeof *(p));

#ifdef __cplusplus
}
#endif
#endif
