/* SPDX-License-Identifier: BSD-3-Clause */
/* NSSI's servers, as in Trios 12. A stub runs on a user-level thread of its own, with a stack of 1 MiB: it may block in
 * nssi_get_data() and nssi_put_data() without holding up the others. */
#ifndef TRIOS_NSSI_SERVER_H
#define TRIOS_NSSI_SERVER_H

#include "Trios_nssi_TypeManip.h"
#include "Trios_nssi_rpc.h"

#ifdef __cplusplus
/* A stub that is an object. */
class NssiRpc {
 public:
  virtual ~NssiRpc() {}
  virtual int doRPC(const int opcode, const unsigned long request_id, const NNTI_peer_t *caller, const void *args,
                    const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) = 0;
};
extern "C" {
#else
typedef uint8_t NssiRpc;
#endif

/* Gets decoded arguments, freed when it returns; answers with nssi_send_result(). If it returns without an answer, its
 * caller gets what it returns or, where that is NSSI_OK, NSSI_EBADRPC. The caller's URL is a name for it, the same for
 * as long as it lives, at which it cannot be called; `data_addr` has its data's size in one segment, or none without
 * data. */
typedef int (*nssi_rpc_proc)(const unsigned long request_id, const NNTI_peer_t *caller, const void *args,
                             const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr);

/* `func` or `obj`. */
typedef struct nssi_svc_op {
  int opcode;
  nssi_rpc_proc func;
  NssiRpc *obj;
  uint32_t sizeof_args;
  xdrproc_t decode_args;
  uint32_t sizeof_res;
  xdrproc_t encode_res;
} nssi_svc_op;

/* A request, for threads of the program's. */
typedef struct rpc_request {
  nssi_service *svc;
  NNTI_peer_t caller;
  char *req_buf; /* NULL */
  nssi_size short_req_len;
  unsigned long id;
  double arrival_time; /* as trios_get_time() */
} nssi_svc_rpc_request;

/* Goes on as a daemon: the process that called ends with 0, without what exit() does, and its child returns, in a
 * session of its own, with a umask of 0, and /dev/null for input, output and errors; in the same folder, with its other
 * files open. To be called before any transport is opened, by a process of one thread. If a transport is open, or the
 * system refuses, an error is logged, and the process goes on as it was. */
void nssi_daemonize(void) TRIOS_SYMBOL(nssi_daemonize);

/* Makes this process a service of `rpc_transport`, which must be open. `short_req_len` is passed over: requests of
 * every size are taken. */
int nssi_service_init(const nssi_rpc_transport rpc_transport, const int short_req_len, nssi_service *service)
    TRIOS_SYMBOL(nssi_service_init);
/* Before nssi_service_start(). NSSI_EEXIST: the code is taken. */
int nssi_service_add_op(const nssi_service *svc, const nssi_svc_op *op) TRIOS_SYMBOL(nssi_service_add_op);
/* Serves until nssi_kill(), whose `sig` it returns; or until service->max_reqs were served, or nssi_service_abort().
 * Calls service->progress_callback, if there is one, in this thread, every service->progress_callback_timeout ms: with
 * true if no stub of this process runs, or has run since the last time, otherwise with false. The callback has a stack
 * of 1 MiB; while it computes, no stub goes on. It may call NSSI's functions: one that waits for them when the service
 * ends goes on when the transport is used again, or closed. */
int nssi_service_start(nssi_service *service) TRIOS_SYMBOL(nssi_service_start);
/* The same; but requests are given to `process_req`, which calls nssi_process_rpc_request() or has a thread of the
 * program's call it, and returns NSSI_OK; or refuses, by another code, which the caller gets. */
int nssi_service_start_wfn(nssi_service *service, int (*process_req)(nssi_svc_rpc_request *req))
    TRIOS_SYMBOL(nssi_service_start_wfn);
/* Runs the stub of `req`, frees `req`, and returns what the stub did. The stub may call nssi_get_data() and the like.
 * Any thread. NSSI_ENOENT: `req` was processed already, or refused, or its transport closed. */
int nssi_process_rpc_request(nssi_svc_rpc_request *req) TRIOS_SYMBOL(nssi_process_rpc_request);
int nssi_service_fini(const nssi_service *service) TRIOS_SYMBOL(nssi_service_fini);
/* Ends nssi_service_start() of every service of this process. */
void nssi_service_abort(void) TRIOS_SYMBOL(nssi_service_abort);

/* Within a stub, for its own request. NSSI_EINVAL: elsewhere; or no such bytes. */
int nssi_get_data(const NNTI_peer_t *caller, void *buf, const nssi_size len, const NNTI_buffer_t *data_addr)
    TRIOS_SYMBOL(nssi_get_data);
int nssi_put_data(const NNTI_peer_t *caller, const void *buf, const nssi_size len, const NNTI_buffer_t *data_addr,
                  const long timeout) TRIOS_SYMBOL(nssi_put_data);
/* NSSI_EEXIST: answered already. */
int nssi_send_result(const NNTI_peer_t *caller, unsigned long request_id, const int rc, void *result,
                     const NNTI_buffer_t *result_addr) TRIOS_SYMBOL(nssi_send_result);
/* Seconds since its stub began; less than 0: it does not run. */
double nssi_get_request_age(const NNTI_peer_t *caller, const int req_id) TRIOS_SYMBOL(nssi_get_request_age);

#define NSSI_REGISTER_SERVER_STUB(id, fptr, arg_type, res_type)                                                \
  trios_register_server_stub((id), (nssi_rpc_proc)(fptr), NULL, NSSI_SIZEOF(arg_type), NSSI_XDRPROC(arg_type), \
                             NSSI_SIZEOF(res_type), NSSI_XDRPROC(res_type))
#define NSSI_REGISTER_SERVER_OBJ(id, func_obj, arg_type, res_type)                                  \
  trios_register_server_stub((id), NULL, (func_obj), NSSI_SIZEOF(arg_type), NSSI_XDRPROC(arg_type), \
                             NSSI_SIZEOF(res_type), NSSI_XDRPROC(res_type))
/* What the two call. */
int trios_register_server_stub(int opcode, nssi_rpc_proc func, NssiRpc *obj, size_t sizeof_args, xdrproc_t decode_args,
                               size_t sizeof_res, xdrproc_t encode_res);

#ifdef __cplusplus
}
#endif
#endif
