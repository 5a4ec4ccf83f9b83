/* SPDX-License-Identifier: BSD-3-Clause */
/* NSSI's runtime in C: what nssi/nssi.hpp is in C++. Arguments and results are bytes here; the stubs that
 * `nessie idl --language c` makes of an interface (nssi/stub.h) are typed. The C interface of the Nessie paper is
 * nssi/nssi.h; a program may use both.
 *
 * A client opens a runtime, connects to a service's URL, starts calls, and waits for them. Bulk data is not part of the
 * arguments: the call lends a buffer, from which the service's handler pulls, and to which it pushes, when it is ready.
 * A service opens a runtime, adds operations, and runs it. A process may be both.
 *
 * Errors: functions return NESSIE_OK or another nessie_code (nessie/codes.h); nssi_rt_last_error() has a sentence that
 *   says more. A function that fails leaves its outputs untouched. Besides what is said of each function:
 *     NESSIE_INVALID_ARGUMENT  a null pointer, a handle that is closed or of another kind, a number out of its range;
 *                              nothing was changed
 *     NESSIE_NO_MEMORY         nothing was changed
 *   Functions that return no code return 0, or null, for a handle that is not open. A closed handle is recognised until
 *   its memory serves a new one.
 * Threads: every function may be called from any thread, several at once; but one call, one buffer and one request are
 *   used by one thread at a time, and a handle is closed when nobody uses it. Handlers run on the thread that drives
 *   progress: the one in nssi_rt_run(), or, in a process that only calls, the ones that wait.
 * Times: in milliseconds. A timeout of -1: no limit of its own; 0: without waiting.
 * Inside a handler that runs on a user-level thread (NSSI_RT_FIBER and the bulk kinds), everything that waits suspends
 *   that handler only. It may go on in another thread if there is no nssi_rt_run(). */
#ifndef NSSI_RUNTIME_H
#define NSSI_RUNTIME_H

#include <nessie/codes.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nssi_rt_runtime nssi_rt_runtime; /* closed by nssi_rt_close() */
typedef struct nssi_rt_buffer nssi_rt_buffer;   /* closed by nssi_rt_free_buffer() */
typedef struct nssi_rt_call nssi_rt_call;       /* closed by nssi_rt_free_call() */
typedef struct nssi_rt_request nssi_rt_request; /* ends when its handler returns */

/* --- errors -------------------------------------------------------------------------------------------------------- */

/* The largest thing that is lost with an operation. */
enum nssi_rt_scope {
  NSSI_RT_SCOPE_OPERATION = 0,
  NSSI_RT_SCOPE_PEER = 1,
  NSSI_RT_SCOPE_SERVICE = 2,
  NSSI_RT_SCOPE_PROCESS = 3
};

/* About the last function of this header, or of the stubs, that failed in this thread: its code; a sentence that says
 * what to do, valid until the next such function fails in this thread; the scope that is lost; the cause: errno or the
 * transport's own code, 0 if there is none. Before any failed: NESSIE_OK, "", 0, 0. */
int32_t nssi_rt_last_code(void);
const char *nssi_rt_last_error(void);
int32_t nssi_rt_last_scope(void);
int32_t nssi_rt_last_cause(void);
/* With NESSIE_BUSY, where it is known, in how many milliseconds there may be room; otherwise 0. */
int64_t nssi_rt_last_retry_after_ms(void);

/* --- runtimes ------------------------------------------------------------------------------------------------------ */

/* All zeros: the defaults. */
typedef struct nssi_rt_options {
  /* "shm,ofi": the transports to open, in order of preference. Null: all that this machine has. */
  const char *transports;
  /* Lines `name = value`, which go before the environment and NESSIE_CONFIG (docs/configuration.md). Null: none. */
  const char *settings;
  uint64_t fiber_stack_bytes;    /* of a handler; 0: 1 MiB. Memory is taken as it is touched */
  uint32_t max_fibers;           /* handlers under way at once; more requests wait. 0: 1024 */
  uint32_t connects_only;        /* 1: nobody can connect to this process */
  uint32_t bulk_quiet_us;        /* microseconds without a request before bulk handlers begin */
  uint32_t bulk_longest_hold_us; /* and how long the oldest is held back at most; 0: 20000 */
} nssi_rt_options;

/* Opens a runtime. `options`: null for the defaults; not used after the function has returned.
 *   NESSIE_UNSUPPORTED       a transport that is asked for does not exist here; the sentence lists those that do
 *   NESSIE_INVALID_ARGUMENT  a setting, or a line of `settings`, cannot be read
 *   NESSIE_NOT_FOUND         NESSIE_CONFIG names no file */
int nssi_rt_open(const nssi_rt_options *options, nssi_rt_runtime **runtime);

/* Ends handlers (what suspends them returns NESSIE_CANCELLED) and calls in progress (NESSIE_CANCELLED), waits until no
 * handler is left, and closes. Calls and buffers stay open and are to be freed as always; memory of
 * nssi_rt_allocate() stays until then. No other thread may be inside a function with this runtime.
 *   NESSIE_INVALID_ARGUMENT  also: called by one of its handlers */
int nssi_rt_close(nssi_rt_runtime *runtime);

/* Where this process can be reached: URLs joined by ';'; "" if it only connects. Valid until nssi_rt_close(). */
const char *nssi_rt_url(const nssi_rt_runtime *runtime);

/* Connects to the service at `url` (a list joined by ';'), proving the job's credential both ways; drives progress.
 * `peer` names the connection, also when it is lost and made again. It is made again for up to nssi.reconnect (1 s).
 *   NESSIE_INVALID_ARGUMENT  also: the URL does not parse
 *   NESSIE_UNSUPPORTED       none of its transports can reach it from here; the sentence says why for each
 *   NESSIE_REFUSED           the credentials differ
 *   NESSIE_PEER_LOST         nobody listens there any more
 *   NESSIE_TIMED_OUT */
int nssi_rt_connect(nssi_rt_runtime *runtime, const char *url, int32_t timeout_ms, uint64_t *peer);

/* Ends the calls in progress to `peer` with NESSIE_CANCELLED. A peer that is not connected is left alone. */
int nssi_rt_disconnect(nssi_rt_runtime *runtime, uint64_t peer);

/* How many bytes of arguments fit a request to `peer`. Larger ones are fetched by the service, as smaller ones may be
 * where it can read this process's memory. */
int nssi_rt_max_inline_args(nssi_rt_runtime *runtime, uint64_t peer, uint64_t *size_bytes);

/* Waits so long: in a handler on a user-level thread suspends it, or ends with NESSIE_CANCELLED if the runtime is being
 * closed; elsewhere drives progress.
 *   NESSIE_INVALID_ARGUMENT  also: less than 0 */
int nssi_rt_sleep(nssi_rt_runtime *runtime, int32_t time_ms);

/* --- bulk buffers -------------------------------------------------------------------------------------------------- */

/* What a service may do with a buffer: pull from it, push to it. */
enum nssi_rt_rights { NSSI_RT_READ = 1, NSSI_RT_WRITE = 2, NSSI_RT_READ_WRITE = 3 };

/* Lends memory of the caller's, which stays mapped until nssi_rt_free_buffer(). Who uses memory often registers it
 * once. */
int nssi_rt_register(nssi_rt_runtime *runtime, void *memory, uint64_t size_bytes, int32_t rights,
                     nssi_rt_buffer **buffer);
/* Makes memory that services on the same node can read in place: zeroed, page-aligned. It goes with the buffer. */
int nssi_rt_allocate(nssi_rt_runtime *runtime, uint64_t size_bytes, int32_t rights, nssi_rt_buffer **buffer);
/* Where it is, how large, and its rights. */
void *nssi_rt_buffer_bytes(const nssi_rt_buffer *buffer);
uint64_t nssi_rt_buffer_size(const nssi_rt_buffer *buffer);
int32_t nssi_rt_buffer_rights(const nssi_rt_buffer *buffer);
/* Afterwards nobody touches the memory, and peers that still know the buffer are refused.
 *   NESSIE_BUSY  it is lent to a call that has not been waited for to its end, and not freed */
int nssi_rt_free_buffer(nssi_rt_buffer *buffer);

/* --- calls --------------------------------------------------------------------------------------------------------- */

/* One of the instances of an interface (RFC 5531: program and version) that a process offers. */
typedef struct nssi_rt_service {
  uint64_t peer;
  uint32_t program, version, provider;
} nssi_rt_service;

/* If the service has no room for a call: it waits here, within its deadline, until the service invites it; or it ends
 * with NESSIE_BUSY, and nssi_rt_last_retry_after_ms() says when there may be room. */
enum nssi_rt_when_busy { NSSI_RT_WAIT_WHEN_BUSY = 0, NSSI_RT_FAIL_WHEN_BUSY = 1 };

typedef void (*nssi_rt_callback)(void *context);

/* All zeros: the defaults. */
typedef struct nssi_rt_call_options {
  /* Bulk data that the service may pull or push, as its rights say; lent until the call is over. Null: none. */
  nssi_rt_buffer *buffer;
  int32_t timeout_ms; /* when the call gives up; 0: nssi.timeout (30 s); -1: never */
  int32_t idempotent; /* 1: carrying it out twice does no harm: it is sent again also to a service that was started
                         anew */
  /* 1: the result is not wanted. The call is over, with an empty result, when its handler begins; freeing it before
   * does not cancel it. Not with a buffer (NESSIE_INVALID_ARGUMENT, told by nssi_rt_wait()). */
  int32_t one_way;
  int32_t when_busy; /* enum nssi_rt_when_busy */
  /* Called once when the call is over, also if it was freed before, on the thread that drives progress: for programs
   * with an event loop of their own. It must not wait, nor touch the call; nssi_rt_when_over() is for those that want
   * to. Null: nobody. */
  nssi_rt_callback on_over;
  void *context; /* given to it; must live until then */
} nssi_rt_call_options;

/* Writes exactly `size_bytes`. Called at most once, before the function that it is given to returns. */
typedef void (*nssi_rt_encoder)(void *context, void *bytes, uint64_t size_bytes);

/* Sends a request and returns; does not wait for anything. `args` is copied; null if it has no bytes. An error that is
 * known already, such as a lost peer, is told by nssi_rt_wait(). */
int nssi_rt_start(nssi_rt_runtime *runtime, const nssi_rt_service *service, uint32_t op, const void *args,
                  uint64_t size_bytes, const nssi_rt_call_options *options, nssi_rt_call **call);
/* The same; `encode` writes the arguments, where possible to where the service fetches them. */
int nssi_rt_start_encoded(nssi_rt_runtime *runtime, const nssi_rt_service *service, uint32_t op, uint64_t size_bytes,
                          nssi_rt_encoder encode, void *context, const nssi_rt_call_options *options,
                          nssi_rt_call **call);

/* The same request to `count` services: `calls` gets a call for each, in their order, to be waited for and freed one by
 * one; nssi_rt_wait_all() waits for all of them. `options` are those of each. If it fails, nothing was sent.
 * Stubs: NAME_async() for each client. */
int nssi_rt_multicast(nssi_rt_runtime *runtime, const nssi_rt_service *services, uint64_t count, uint32_t op,
                      const void *args, uint64_t size_bytes, const nssi_rt_call_options *options, nssi_rt_call **calls);

/* Waits for the end of a call. NESSIE_OK: the result is here; otherwise the error that the handler replied, with its
 * sentence, scope and cause, or what happened instead:
 *   NESSIE_TIMED_OUT    the result is not here yet: the call goes on and can be waited for again, until its own
 *                       deadline; or that has passed (nssi_rt_test() tells): the service may have acted
 *   NESSIE_PEER_LOST    the service died, or was started anew, and may have acted before
 *   NESSIE_NOT_FOUND    it has no such program, provider or operation
 *   NESSIE_UNSUPPORTED  it has other versions of the interface
 *   NESSIE_BAD_MESSAGE  it could not decode the arguments
 *   NESSIE_NO_RESULT    its handler ended without a result
 *   NESSIE_CANCELLED    nssi_rt_cancel(), nssi_rt_disconnect(), nssi_rt_close()
 *   NESSIE_BUSY         there is no room for it now (NSSI_RT_FAIL_WHEN_BUSY)
 *   NESSIE_UNAVAILABLE  the service is being stopped
 *   NESSIE_REFUSED      the operation is for operators
 * A call that is over tells the same each time. */
int nssi_rt_wait(nssi_rt_call *call, int32_t timeout_ms);
/* Whether it is over: 1 or 0. Drives progress, and does not wait. */
int nssi_rt_test(nssi_rt_call *call, int32_t *is_over);
/* Waits until one of the calls is over, `which`; returns what nssi_rt_wait() says of it, or, leaving `which` untouched,
 * NESSIE_TIMED_OUT, or NESSIE_NOT_FOUND if there is none. Null entries are skipped: make those null that are done. */
int nssi_rt_wait_any(nssi_rt_call *const *calls, uint64_t count, int32_t timeout_ms, uint64_t *which);
/* Waits for all of them, `timeout_ms` altogether; null entries are skipped. Returns NESSIE_OK, or the first error in
 * the array. */
int nssi_rt_wait_all(nssi_rt_call *const *calls, uint64_t count, int32_t timeout_ms);

/* Has `callback` called once, on a user-level thread, when the call is over, or soon if it is: it may wait, use this
 * call, free it, and make others. Not if the call is freed before. One for each call; a deadline that passes ends the
 * call then, too, as long as somebody drives progress. */
int nssi_rt_when_over(nssi_rt_call *call, nssi_rt_callback callback, void *context);

/* The bytes of the result, valid until nssi_rt_free_call(); null if there are none.
 *   NESSIE_INVALID_ARGUMENT  also: the call is not over, or ended with an error */
int nssi_rt_result(const nssi_rt_call *call, const void **bytes, uint64_t *size_bytes);

/* Ends a call in progress with NESSIE_CANCELLED. Waits until the service can no longer touch the buffer that the call
 * lends, until the call's deadline at most. The service may have acted. A call that is over, or whose result is about
 * to be here, ends as it would have. */
int nssi_rt_cancel(nssi_rt_call *call);
/* Frees a call; cancels it before if it is not over. */
int nssi_rt_free_call(nssi_rt_call *call);

/* --- services ------------------------------------------------------------------------------------------------------ */

/* How a handler runs. FIBER: on a user-level thread of its own; it may wait without holding up others. SHORT: where the
 * request arrived, without a switch; while it runs, nothing else does. BULK: as FIBER, for work that takes long and
 * that nobody waits for: begun when no request has come for bulk_quiet_us. BULK_NOW: its caller waits: begun after the
 * bulk handlers that arrived before, which are not held back any more. */
enum nssi_rt_kind { NSSI_RT_FIBER = 0, NSSI_RT_SHORT = 1, NSSI_RT_BULK = 2, NSSI_RT_BULK_NOW = 3 };

/* Serves a request: answers it by nssi_rt_reply() or nssi_rt_reply_error() before it returns, or the caller gets
 * NESSIE_NO_RESULT. */
typedef void (*nssi_rt_handler)(void *context, nssi_rt_request *request);

typedef struct nssi_rt_operation {
  uint32_t program, version, provider, op;
  const char *name; /* for errors and statistics; copied */
  int32_t kind;     /* enum nssi_rt_kind */
  /* 1: the handler reads each byte of the arguments once, before it relies on any of them: then long ones need not be
   * copied first, but for one-way calls. Their caller may change them at any moment. */
  int32_t reads_args_once;
  nssi_rt_handler handler;
  void *context; /* given to the handler; must live until nssi_rt_close() */
} nssi_rt_operation;

/* Offers an operation. Any thread, also while requests are served: those that come from then on find it.
 *   NESSIE_EXISTS  this provider of the interface has an operation of that number */
int nssi_rt_add_operation(nssi_rt_runtime *runtime, const nssi_rt_operation *operation);
/* Serves requests until nssi_rt_stop().
 *   NESSIE_INVALID_ARGUMENT  also: called by one of its handlers */
int nssi_rt_run(nssi_rt_runtime *runtime);
/* Makes nssi_rt_run() return soon, or the next one at once. Async-signal-safe for a runtime that is open. */
int nssi_rt_stop(nssi_rt_runtime *runtime);
/* Refuses new requests (NESSIE_UNAVAILABLE), and makes nssi_rt_run() return when those that were accepted have been
 * answered and their callers have the results, after `timeout_ms` at the latest. The next nssi_rt_run() takes requests
 * again. Async-signal-safe for a runtime that is open. */
int nssi_rt_stop_when_done(nssi_rt_runtime *runtime, int32_t timeout_ms);

/* Within a handler, of its own request. */

/* Who calls: a peer, as nssi_rt_disconnect() takes it. */
uint64_t nssi_rt_caller(const nssi_rt_request *request);
/* The caller's process, whatever connection it comes by: 16 random bytes, the same as long as that runtime lives. */
int nssi_rt_caller_identity(const nssi_rt_request *request, uint8_t identity[16]);
/* What the caller has proved: enum nssi_rt_role. USER: the job's credential, as everybody who connects; OPERATOR: the
 * operators', too (setting operator_credential). Setting nssi.op.NAME.role says what an operation demands. */
enum nssi_rt_role { NSSI_RT_USER = 0, NSSI_RT_OPERATOR = 1 };
int32_t nssi_rt_role(const nssi_rt_request *request);
uint32_t nssi_rt_op(const nssi_rt_request *request);
/* The arguments; null if they have no bytes. Valid while the handler runs. */
int nssi_rt_args(const nssi_rt_request *request, const void **bytes, uint64_t *size_bytes);
/* Size of the caller's bulk buffer; 0 if it lent none. */
uint64_t nssi_rt_data_bytes(const nssi_rt_request *request);
/* How long the caller still waits, rounded up; 0: no longer; -1: for ever. */
int64_t nssi_rt_time_left_ms(const nssi_rt_request *request);
/* Whether somebody still waits for the result: a handler that takes long asks now and then, after it has waited for
 * something (nssi_rt_sleep() for 0 ms is enough), as it hears of its caller then. One-way calls go on in any case.
 *   NESSIE_CANCELLED  the caller has cancelled the call, or the runtime is being closed
 *   NESSIE_TIMED_OUT  past the call's deadline
 *   NESSIE_PEER_LOST  the caller has gone, and has not come back for nssi.reconnect */
int nssi_rt_check(const nssi_rt_request *request);

/* Pulls data[offset, offset + size_bytes) of the caller into `destination`. NESSIE_OK: it can be read here.
 *   NESSIE_INVALID_ARGUMENT  also: the caller lent no buffer, or the request has been answered
 *   NESSIE_OUT_OF_RANGE      beyond the caller's buffer; nothing was moved
 *   NESSIE_REFUSED           its rights do not allow it; nothing was moved
 *   NESSIE_PEER_LOST         the caller is gone; `destination` holds no usable data
 *   NESSIE_CANCELLED         the caller has cancelled the call, or the runtime is being closed
 *   NESSIE_TIMED_OUT         past the call's deadline */
int nssi_rt_get_data(nssi_rt_request *request, void *destination, uint64_t size_bytes, uint64_t offset);
/* Pushes `source` to data[offset, offset + size_bytes) of the caller. NESSIE_OK: the caller can read it before it gets
 * the result. Errors as nssi_rt_get_data(). */
int nssi_rt_put_data(nssi_rt_request *request, const void *source, uint64_t size_bytes, uint64_t offset);
/* The caller's buffer, all of it, to be read where it lies while the handler runs. The caller may change it meanwhile.
 *   NESSIE_UNSUPPORTED  it cannot be: the caller is on another node, or its memory is not of nssi_rt_allocate() */
int nssi_rt_view_data(const nssi_rt_request *request, const void **bytes, uint64_t *size_bytes);

/* Sends the result, once; it is copied.
 *   NESSIE_EXISTS                       the request has been answered
 *   NESSIE_PEER_LOST, NESSIE_CANCELLED  the caller is gone, or has given up: no fault of the handler */
int nssi_rt_reply(nssi_rt_request *request, const void *result, uint64_t size_bytes);
/* The same; `encode` writes the result, where possible to where the caller fetches it. */
int nssi_rt_reply_encoded(nssi_rt_request *request, uint64_t size_bytes, nssi_rt_encoder encode, void *context);
/* Answers with an error, which the caller's nssi_rt_wait() gives as it is here. `code`: of nessie/codes.h, not OK;
 * `scope`: enum nssi_rt_scope; `message`: a sentence, or null for that of the code. Errors as nssi_rt_reply(). */
int nssi_rt_reply_error(nssi_rt_request *request, int32_t code, int32_t scope, int32_t cause, const char *message);

#ifdef __cplusplus
}
#endif
#endif
