/* SPDX-License-Identifier: BSD-3-Clause */
/* NSSI, the Network Scalable Service Interface, in C: section 5 of the Nessie paper. C++ programs may prefer
 * nssi/nssi.hpp.
 *
 * A client registers the encodings of an operation (NSSI_REGISTER_CLIENT_STUB), gets a service by its URL, and calls:
 * nssi_call_rpc sends the request and returns; nssi_wait waits for the result. Arguments and results are encoded with
 * the xdr_ procedures that rpcgen makes. Bulk data is not encoded: the request says where it is, and the server moves
 * it, with nssi_get_data and nssi_put_data, when it is ready.
 * A server registers stubs (NSSI_REGISTER_SERVER_STUB) and serves until it is killed (nssi_service_start). Every stub
 * runs on a user-level thread of its own, with a stack of 1 MiB: it may block in nssi_get_data and nssi_put_data
 * without holding up the others.
 *
 * Threads: every function may be called from any thread, several at once; those of a stub only within it.
 * Deadlines: a call gives up after NESSIE_NSSI_TIMEOUT (30 s). Timeouts are in milliseconds; -1: until then; 0: not at
 * all.
 * Errors: functions return NSSI_OK or a code; nssi_last_error() has a sentence that says more. What a call's stub
 * answered (its own code, any number) is *remote_rc, and apart from them. */
#ifndef NSSI_NSSI_H
#define NSSI_NSSI_H

#include <nnti/nnti.h>
#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes are NNTI's:
 *   NSSI_ECANCELED    the call was cancelled, or its service disconnected here
 *   NSSI_ETIMEDOUT    no answer in time; the service may have acted, or may still act
 *   NSSI_EINVAL       a bad argument; nothing was changed
 *   NSSI_ENOENT       the service has no such operation; or no encoding is registered for it
 *   NSSI_EBADRPC      the stub ended without a result
 *   NSSI_ENOTINIT     nssi_init was not called for this transport
 *   NSSI_EPERM        refused: wrong credential, or a right that a buffer lacks
 *   NSSI_EWOULDBLOCK  nssi_test: not yet
 *   NSSI_EDECODE      arguments or result cannot be decoded; NSSI_EENCODE: they cannot be encoded
 *   NSSI_EPEERLOST    the service, or the caller, died
 * and NSSI_OK, _EIO, _EMSGSIZE, _ENOMEM, _ENOTSUP, _EEXIST, _EAGAIN. */
#define NSSI_RESULT(name, number, number_in_trios) NSSI_##name = number,
enum nssi_return_codes { NESSIE_RESULTS(NSSI_RESULT, NESSIE_NO_RESULT) };
#undef NSSI_RESULT

typedef NNTI_transport_id_t nssi_rpc_transport;
#define NSSI_RPC_LOCAL NNTI_TRANSPORT_LOCAL
#define NSSI_DEFAULT_TRANSPORT NNTI_DEFAULT_TRANSPORT

typedef enum nssi_rpc_encode { NSSI_RPC_XDR = 0 } nssi_rpc_encode;
#define NSSI_DEFAULT_ENCODE NSSI_RPC_XDR

typedef uint64_t nssi_size;
typedef int64_t nssi_ssize;

#define NSSI_URL_LEN NNTI_URL_LEN

/* A service, as a client sees it; at the server, itself. */
typedef struct nssi_service {
  nssi_rpc_transport transport_id;
  nssi_rpc_encode rpc_encode;
  NNTI_peer_t svc_host;
} nssi_service;

typedef enum nssi_request_status {
  NSSI_REQUEST_ERROR = -1,
  NSSI_REQUEST_NULL = 0,
  NSSI_SENDING_REQUEST = 1,
  NSSI_PROCESSING_REQUEST = 2,
  NSSI_PROCESSING_RESULT = 3,
  NSSI_REQUEST_TIMEDOUT = 4,
  NSSI_REQUEST_COMPLETE = 5
} nssi_request_status;

/* A call in progress. Filled by nssi_call_rpc; finished by the first nssi_wait (or test, waitany, waitall) that sees
 * its end, and to be given to one of them. */
typedef struct nssi_request {
  nssi_size id; /* private; 0: not in progress */
  int opcode;
  int error_code; /* of the call, once it is finished */
  int remote_rc;  /* what the stub answered */
  nssi_request_status status;
  void *result;
} nssi_request;

/* --- both sides ---------------------------------------------------------------------------------------------------- */

/* Opens the transport; listens at a URL of its own. Once more for the same transport: counted, nothing else.
 *   NSSI_ENOTSUP  this machine does not have it;  NSSI_EINVAL  a setting of the environment does not parse */
int nssi_init(const nssi_rpc_transport transport);
/* Closes what nssi_init opened (when called as often). Calls in progress end with NSSI_ECANCELED. */
int nssi_fini(const nssi_rpc_transport transport);
/* The first implementation's names for the two. `url` is NULL. */
int nssi_rpc_init(const nssi_rpc_transport transport, const nssi_rpc_encode encode, const char *url);
int nssi_rpc_fini(const nssi_rpc_transport transport);

/* Writes the URL, or list of URLs, at which this process can be reached. NSSI_EMSGSIZE: needs more than `maxlen`. */
int nssi_get_url(const nssi_rpc_transport transport, char *url, const uint32_t maxlen);

/* "NSSI_ETIMEDOUT", or "unknown NSSI code". The string lives for ever. */
const char *nssi_err_str(const int rc);
/* A sentence about the last error that an nssi function returned in this thread; valid until the next one. */
const char *nssi_last_error(void);

/* The codec of a type: rpcgen's or libtirpc's xdr_<type>. */
#define NSSI_XDRPROC(type) ((xdrproc_t)(void (*)(void)) & xdr_##type)

/* --- clients ------------------------------------------------------------------------------------------------------- */

/* Says how an operation's arguments and result are encoded. `encode_data` is not used: bulk data is raw bytes. */
int nssi_register_xdr_encoding(int opcode, xdrproc_t encode_args, xdrproc_t encode_data, xdrproc_t encode_result);
#define NSSI_REGISTER_CLIENT_STUB(opcode, argtype, datatype, rettype) \
  nssi_register_xdr_encoding((opcode), NSSI_XDRPROC(argtype), NSSI_XDRPROC(datatype), NSSI_XDRPROC(rettype))

/* Connects to the service at `url` within `timeout`, proving the job's credential both ways.
 *   NSSI_EINVAL, NSSI_ENOTSUP (not reachable from here), NSSI_EPERM (credentials differ), NSSI_ETIMEDOUT,
 *   NSSI_EPEERLOST (nobody listens there), NSSI_ENOTINIT */
int nssi_get_service(const nssi_rpc_transport transport, const char *url, const int timeout, nssi_service *result);
/* Disconnects from it. Calls in progress end with NSSI_ECANCELED. */
int nssi_free_service(const nssi_rpc_transport transport, nssi_service *svc);

/* Sends a request and returns. `args` is encoded before it returns. `data` (`data_len` bytes, or NULL) and `result` are
 * lent until the request is finished: the server reads and writes `data`; the result is decoded into `result`, unless
 * that is NULL. */
int nssi_call_rpc(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len, void *result,
                  nssi_request *request);
/* The same and waits. Returns the call's error or, if it has none, the stub's code. */
int nssi_call_rpc_sync(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len,
                       void *result);

/* Wait for the end of a call. NSSI_OK: the stub answered, *remote_rc is its code, and the result is there if that is
 * NSSI_OK. If the call ended otherwise, its error is returned, and is *remote_rc, too. Further waits for a finished
 * request return the same. `remote_rc` may be null.
 * NSSI_ETIMEDOUT of nssi_timedwait and nssi_waitany: if request->id is not 0, the call goes on and can be waited for
 * again; *remote_rc is as it was then, as it is for a request that was never sent (NSSI_EINVAL). */
int nssi_wait(nssi_request *request, int *remote_rc);
int nssi_timedwait(nssi_request *request, int timeout, int *remote_rc);
/* NSSI_EWOULDBLOCK: not finished yet; *remote_rc is as it was. */
int nssi_test(nssi_request *request, int *remote_rc);
/* Waits for whichever call of the array ends first, `which`. Requests finished before are skipped; NSSI_ENOENT if there
 * is no other. */
int nssi_waitany(nssi_request *requests, nssi_size count, int timeout, int *which, int *remote_rc);
/* Waits for all. Returns NSSI_OK if every stub answered NSSI_OK, or the first other code in the array. */
int nssi_waitall(nssi_request *requests, nssi_size count, int timeout);

/* Ends a service: it refuses new requests, and its nssi_service_start returns `sig` (0: NSSI_OK) when those that it has
 * accepted are answered, after 10 s at the latest. */
int nssi_kill(const nssi_service *svc, const int sig, const long timeout);

/* --- servers ------------------------------------------------------------------------------------------------------- */

/* A stub. Gets decoded arguments (freed when it returns), and answers with nssi_send_result. If it returns without an
 * answer, the caller gets the stub's own return code or, where that is NSSI_OK, NSSI_EBADRPC. */
typedef int (*nssi_rpc_proc)(const unsigned long request_id, const NNTI_peer_t *caller, const void *args,
                             const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr);

typedef struct nssi_svc_op {
  int opcode;
  nssi_rpc_proc func;
  size_t sizeof_args;
  xdrproc_t decode_args;
  size_t sizeof_res;
  xdrproc_t encode_res;
} nssi_svc_op;

/* Makes this process a service of `transport`, which must have been initialised. `short_req_len` is not used: requests
 * of every size are taken. */
int nssi_service_init(const nssi_rpc_transport transport, const int short_req_len, nssi_service *service);
/* Adds an operation to the services that this process starts from now on. NSSI_EEXIST: the code is taken. */
int nssi_service_add_op(const nssi_service *svc, const nssi_svc_op *op);
int nssi_register_server_stub(int opcode, nssi_rpc_proc func, size_t sizeof_args, xdrproc_t decode_args,
                              size_t sizeof_res, xdrproc_t encode_res);
/* Serves until nssi_kill; returns what that said. The operations are those that have been added until now, also where
 * others were served before. In the configuration, and in statistics, operation 42 is called op42.
 *   NSSI_EINVAL  a setting of an operation cannot be read;  NSSI_ENOENT  a setting names a pool that there is not
 *   NSSI_EEXIST  an operation has the number of nssi_kill's, 0x4E534B00 */
int nssi_service_start(nssi_service *service);
/* Forgets the operations. */
int nssi_service_fini(const nssi_service *service);

#define NSSI_REGISTER_SERVER_STUB(id, fptr, arg_type, res_type)                                         \
  nssi_register_server_stub((id), (nssi_rpc_proc)(fptr), NSSI_SIZEOF(arg_type), NSSI_XDRPROC(arg_type), \
                            NSSI_SIZEOF(res_type), NSSI_XDRPROC(res_type))

/* Within a stub, for its own request (`data_addr` names it): pulls the first `len` bytes of the caller's buffer, pushes
 * into it (giving up after `timeout`, or when the caller does). They return when the data can be read here, or by the
 * caller before it gets the result.
 *   NSSI_EINVAL  no such bytes in the caller's buffer, no buffer, or not called within the stub
 *   NSSI_EPEERLOST, NSSI_ETIMEDOUT, NSSI_ECANCELED (the caller gave up), NSSI_EPERM */
int nssi_get_data(const NNTI_peer_t *caller, void *buf, nssi_size len, const NNTI_buffer_t *data_addr);
int nssi_put_data(const NNTI_peer_t *caller, const void *buf, nssi_size len, const NNTI_buffer_t *data_addr,
                  const long timeout);
/* Answers a request, once. `result` goes with NSSI_OK only; NULL: none. NSSI_EEXIST: answered already. */
int nssi_send_result(const NNTI_peer_t *caller, unsigned long request_id, const int rc, void *result,
                     const NNTI_buffer_t *res_addr);

#ifdef __cplusplus
}
namespace nssi {
template <class T> struct SizeOf { static constexpr size_t value = sizeof(T); };
template <> struct SizeOf<void> { static constexpr size_t value = 0; };
}  // namespace nssi
#define NSSI_SIZEOF(type) (::nssi::SizeOf<type>::value)
#else
#define NSSI_SIZEOF(type) (__extension__ sizeof(type))
#endif
#endif
