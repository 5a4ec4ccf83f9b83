/* SPDX-License-Identifier: BSD-3-Clause */
/* NSSI's clients, as in Trios 12. A call gives up after NESSIE_NSSI_TIMEOUT (30 s). Timeouts are in milliseconds; -1:
 * until then. */
#ifndef TRIOS_NSSI_CLIENT_H
#define TRIOS_NSSI_CLIENT_H

#include "Trios_nssi_TypeManip.h"
#include "Trios_nssi_request.h"
#include "Trios_nssi_rpc.h"

#define NSSI_REGISTER_CLIENT_STUB(opcode, argtype, datatype, rettype) \
  nssi_register_xdr_encoding((opcode), NSSI_XDRPROC(argtype), NSSI_XDRPROC(datatype), NSSI_XDRPROC(rettype))

#ifdef __cplusplus
extern "C" {
#endif

int nssi_init(const nssi_rpc_transport transport_id) TRIOS_SYMBOL(nssi_init);
int nssi_fini(const nssi_rpc_transport transport_id) TRIOS_SYMBOL(nssi_fini);

/* Connects to the service at `url`. NSSI_ENOTSUP: not reachable from here; NSSI_EPERM: the credentials differ;
 * NSSI_EPEERLOST: nobody listens there; NSSI_ETIMEDOUT, NSSI_EINVAL, NSSI_ENOTINIT. */
int nssi_get_service(const nssi_rpc_transport rpc_transport, const char *url, const int timeout, nssi_service *result)
    TRIOS_SYMBOL(nssi_get_service);
/* The first error ends it; the services before are connected. */
int nssi_get_services(const nssi_rpc_transport rpc_transport, const char **url, const int num_servers,
                      const int timeout, nssi_service *result) TRIOS_SYMBOL(nssi_get_services);
int nssi_free_service(const nssi_rpc_transport rpc_transport, nssi_service *svc) TRIOS_SYMBOL(nssi_free_service);
/* Ends the service; its nssi_service_start() returns `sig`. */
int nssi_kill(const nssi_service *svc, const int sig, const long timeout) TRIOS_SYMBOL(nssi_kill);
/* The service's process ends its trace (Trios_trace.h) and begins one in the file `fname`, of its own file system, in
 * which only the groups of the list `enable` are traced; a file of that name is overwritten. NULL or "": no file, no
 * groups. Beside the program's groups there are "rpc-counter", how often stubs were called, and "rpc-interval", how
 * long each took; their events are the operations' codes, and their processes the requests' numbers. NSSI_EINVAL: svc
 * is NULL, a string is too long (4095 bytes, `enable` 512), or the service does not have all of the groups, and traces
 * those that it has. NSSI_EIO: the file cannot be written; the trace goes on as it was. NSSI_ETIMEDOUT: no answer
 * within `timeout` ms (less than 0: as other calls); it may begin yet. NSSI_ENOENT: the service is one of nssi/nssi.h.
 * NSSI_EPERM: it is for operators, unless the service's configuration says otherwise. NSSI_EPEERLOST, NSSI_ENOTINIT. */
int nssi_trace_reset(const nssi_service *svc, const char *fname, const int ftype, const char *enable,
                     const long timeout) TRIOS_SYMBOL(nssi_trace_reset);

/* Fills a request, which nssi_send_request() encodes and sends. */
int nssi_create_request(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_size,
                        void *result, nssi_request *request) TRIOS_SYMBOL(nssi_create_request);
/* NSSI_EINVAL: it is responseless, and has data or a result. With is_sync: also what nssi_timedwait() returns. */
int nssi_send_request(nssi_request *request) TRIOS_SYMBOL(nssi_send_request);
/* The two. */
int nssi_call_rpc(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len, void *result,
                  nssi_request *request) TRIOS_SYMBOL(nssi_call_rpc);
/* And waits. Returns the call's error or, if it has none, what the stub answered. */
int nssi_call_rpc_sync(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len,
                       void *result) TRIOS_SYMBOL(nssi_call_rpc_sync);

/* NSSI_OK: the stub answered, and *remote_rc is what it answered; the result is there if that is NSSI_OK. If the call
 * ended otherwise, its error is returned, and is *remote_rc, too. *remote_rc is as it was while the call goes on
 * (NSSI_ETIMEDOUT with request->id other than 0), and if none was sent (NSSI_EINVAL). It may be null. Asking again for
 * a call that is over tells the same. */
int nssi_wait(nssi_request *request, int *remote_rc) TRIOS_SYMBOL(nssi_wait);
int nssi_timedwait(nssi_request *request, int timeout, int *remote_rc) TRIOS_SYMBOL(nssi_timedwait);
/* NSSI_EWOULDBLOCK: not yet; *remote_rc is as it was. */
int nssi_test(nssi_request *request, int *remote_rc) TRIOS_SYMBOL(nssi_test);
int nssi_get_status(nssi_request *request, int *status, int *rc) TRIOS_SYMBOL(nssi_get_status);
/* For the first that ends, `which`. Requests that are complete are skipped; NSSI_ENOENT: there are no others. */
int nssi_waitany(nssi_request *req_array, nssi_size req_count, int timeout, int *which, int *remote_rc)
    TRIOS_SYMBOL(nssi_waitany);
/* NSSI_OK: every stub answered NSSI_OK; or the first other code in the array. */
int nssi_waitall(nssi_request *req_array, nssi_size req_count, int timeout) TRIOS_SYMBOL(nssi_waitall);

/* The same call to several services; results at `results`, one every `result_size` bytes. */
int nssi_multicast_rpc(const nssi_service *svcs, const nssi_size num_svcs, const int opcode, void *args, void *data,
                       nssi_size data_size, void *results, nssi_size result_size, nssi_request *requests)
    TRIOS_SYMBOL(nssi_multicast_rpc);
int nssi_multicast_rpc_sync(const nssi_service *svcs, const nssi_size num_svcs, const int opcode, void *args,
                            void *data, nssi_size data_size, void *results, nssi_size result_size)
    TRIOS_SYMBOL(nssi_multicast_rpc_sync);

/* Atomic variables. Each transport that is open has an array of them, 512 or TRIOS_NNTI_MIN_ATOMIC_VARS if that is
 * more, which begin with 0. They are NSSI's: those of NNTI_atomic_fop() are others. */

/* Adds 1 to, or takes 1 from, the service's variable `remote_atomic`, exactly once; its former value is in our variable
 * `local_atomic` when they return. The service needs a thread in nssi_service_start(). Callers that share a
 * `local_atomic` overwrite each other's values. NSSI_EINVAL: svc is NULL, or one of the variables does not exist;
 * nothing was changed. NSSI_ETIMEDOUT, NSSI_EPEERLOST: the service may have done it; `local_atomic` is as it was.
 * NSSI_ENOENT: the service is one of nssi/nssi.h. NSSI_ENOTINIT. */
int nssi_atomic_increment(const nssi_service *svc, const uint64_t remote_atomic, const uint64_t local_atomic)
    TRIOS_SYMBOL(nssi_atomic_increment);
int nssi_atomic_decrement(const nssi_service *svc, const uint64_t remote_atomic, const uint64_t local_atomic)
    TRIOS_SYMBOL(nssi_atomic_decrement);
/* The value of this process's variable `local_atomic`, of the transport of `svc`: what was fetched last, or, at the
 * service itself, what its clients have made of it. NSSI_EINVAL: svc or value is NULL, or there is no such variable.
 * NSSI_ENOTINIT. */
int nssi_atomic_read(const nssi_service *svc, const uint64_t local_atomic, int64_t *value)
    TRIOS_SYMBOL(nssi_atomic_read);

#ifdef __cplusplus
}
#endif
#endif
