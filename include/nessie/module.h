/* SPDX-License-Identifier: BSD-3-Clause */
/* A service of one's own in nessied: a shared object with one entry point. In C it uses nssi/runtime.h, or the stubs
 * that `nessie idl --language c` makes; in C++ nessie/module.hpp. It is not linked to Nessie: nessied brings all that
 * these headers declare. docs/hosting.md is about it, examples/service is one. */
#ifndef NESSIE_MODULE_H
#define NESSIE_MODULE_H

#include <nessie/codes.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. nessied takes modules of its own number and of its own version only. */
#define NESSIE_MODULE_ABI 1
#define NESSIE_MODULE_VERSION "0.1.0"

typedef struct nssi_rt_runtime nssi_rt_runtime; /* nssi/runtime.h */

/* What one provider of the module stands on. Its functions may be called by any thread, until stop() has returned. */
typedef struct nessie_provider nessie_provider;

/* The runtime that all providers of the process share: to add operations to, and to call others with. Not to be run,
 * stopped or closed. */
nssi_rt_runtime *nessie_provider_runtime(nessie_provider *provider);
/* The provider number that its operations are to have. */
uint32_t nessie_provider_number(const nessie_provider *provider);
/* Its name, and the pool whose threads are to run its handlers ("": none). Valid until stop(). */
const char *nessie_provider_name(const nessie_provider *provider);
const char *nessie_provider_pool(const nessie_provider *provider);
/* A setting of it: what its table in the configuration says under `settings`, or else the settings of the process under
 * "TYPE.KEY". Null: there is none. Valid until stop(). */
const char *nessie_provider_setting(nessie_provider *provider, const char *key);
/* Where the provider is that it uses in this role, as nssi_connect_to() takes it. Null: none. `number`, if not null:
 * the provider number of its operations. Valid until stop(). */
const char *nessie_provider_uses(const nessie_provider *provider, const char *role, uint32_t *number);
/* Within start(): why it fails; a sentence that says what to do. */
void nessie_provider_fail(nessie_provider *provider, const char *sentence);
/* Ends the process as SIGTERM does. */
void nessie_provider_end_process(nessie_provider *provider);

typedef struct nessie_module {
  uint32_t abi;        /* NESSIE_MODULE_ABI */
  const char *version; /* NESSIE_MODULE_VERSION */
  const char *type;    /* of its providers */
  /* The roles that it uses others in, as types of providers: "directory transfer?". A '?' says that it may be without.
   * Null: none. */
  const char *uses;
  /* Adds the provider's operations. `state` is given to the other functions. Returns NESSIE_OK, or another code after
   * nessie_provider_fail(); nothing of it is left then. */
  int (*start)(nessie_provider *provider, void **state);
  /* Null where there is nothing to say. What it has and does now, in a few words, for `nessie status`; on the thread
   * that drives. Valid until the next call with `state`. */
  const char *(*describe)(void *state);
  /* Null where there is nothing to do. A peer died, or left; on the thread that drives. */
  void (*peer_lost)(void *state, uint64_t peer);
  /* Null likewise. The process is to end: returns when what was acknowledged is finished. A handler on a user-level
   * thread. */
  void (*quiesce)(void *state);
  /* Null likewise. Nothing drives any more. The last call with `state`, but for destroy(). */
  void (*stop)(void *state);
  /* Null likewise. The runtime is gone, and with it whatever handlers were still under way: `state` may be freed. */
  void (*destroy)(void *state);
} nessie_module;

/* The entry point, which the module defines. What it returns lives as long as the module. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const nessie_module *
nessie_module_entry(void);

#ifdef __cplusplus
}
#endif

#endif
