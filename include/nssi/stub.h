/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stubs and skeletons in C of `nessie idl --language c` are made of (src/xdr/idl/README.md), on
 * nssi/runtime.h. Link nessie_nssi_stub. */
#ifndef NSSI_STUB_H
#define NSSI_STUB_H

#include <nssi/runtime.h>
#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where calls go: a provider of the interface at a peer. Filled by its user; any thread may use it. */
typedef struct nssi_rt_client {
  nssi_rt_runtime *runtime;
  uint64_t peer; /* of nssi_rt_connect() */
  uint32_t provider;
} nssi_rt_client;

/* --- what is made calls the rest ----------------------------------------------------------------------------------- */

/* Encodes, decodes or frees a value, as the stream says. */
typedef bool_t (*nssi_stub_coder)(XDR *xdrs, void *value);

struct nssi_stub_argument {
  nssi_stub_coder code;
  size_t offset; /* in the struct of the decoded arguments */
};

struct nssi_stub_procedure {
  uint32_t program, version, op;
  const char *name;
  int32_t rights; /* that a bulk buffer must have; 0: there is none */
  uint32_t count; /* of arguments */
  const struct nssi_stub_argument *arguments;
  size_t arguments_size;
  nssi_stub_coder code_result; /* null: void */
  size_t result_size;
  /* Calls the user's function of a service, with the struct of the decoded arguments. */
  int (*call)(const void *service, nssi_rt_request *request, void *arguments, void *result);
};

/* `arguments`: where each of them is. Errors as nssi_rt_start(); NESSIE_INVALID_ARGUMENT besides: an argument breaks a
 * rule of the interface, or the buffer lacks a right; nothing was sent. */
int nssi_stub_start(const nssi_rt_client *client, const struct nssi_stub_procedure *procedure,
                    const void *const *arguments, nssi_rt_buffer *buffer, const nssi_rt_call_options *options,
                    nssi_rt_call **call);
/* Waits, and decodes the result; null: it is not wanted. That of a one-way call is all zeros. Errors as nssi_rt_wait();
 * NESSIE_BAD_MESSAGE besides: the result is not of the type that the interface says. */
int nssi_stub_wait(nssi_rt_call *call, const struct nssi_stub_procedure *procedure, int32_t timeout_ms, void *result);
/* The two, and frees the call. */
int nssi_stub_call(const nssi_rt_client *client, const struct nssi_stub_procedure *procedure,
                   const void *const *arguments, nssi_rt_buffer *buffer, const nssi_rt_call_options *options,
                   void *result);

/* NESSIE_INVALID_ARGUMENT: it is null. */
int nssi_stub_check(const void *service);
/* Adds an operation whose handler is given `service`. */
int nssi_stub_offer(nssi_rt_runtime *runtime, uint32_t provider, const struct nssi_stub_procedure *procedure,
                    nssi_rt_handler handler, const void *service, int32_t kind);
/* The body of such a handler: decodes the arguments, calls, and answers. */
void nssi_stub_serve(nssi_rt_request *request, const struct nssi_stub_procedure *procedure, const void *service);
/* Answers a request with `result`. Errors as nssi_rt_reply(); NESSIE_INVALID_ARGUMENT besides: it breaks a rule of the
 * interface; NESSIE_TOO_LARGE: it takes 4 GiB or more. Nothing was sent then. */
int nssi_stub_reply(nssi_rt_request *request, const struct nssi_stub_procedure *procedure, const void *result);

#ifdef __cplusplus
}
#endif
#endif
