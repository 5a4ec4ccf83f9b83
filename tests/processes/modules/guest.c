/* SPDX-License-Identifier: BSD-3-Clause */
/* A module that offers nothing: it says what it finds and when it ends, and fails as its setting `fail` says. */
#include <directory_rpc.h>
#include <nessie/module.h>
#include <nssi/discovery.h>

#include <stdio.h>

#ifndef GUEST_VERSION
#define GUEST_VERSION NESSIE_MODULE_VERSION
#endif

static int say(const char *name, const char *what) {
  printf("%s: %s\n", name, what);
  return fflush(stdout);
}

/* Asks the directory at `where` what it has. */
static int list_names(nssi_rt_runtime *runtime, const char *where, uint32_t number, u_int *count) {
  char empty[] = "";
  const query all = {TRUE, empty};
  listing found = {{0, 0}, {0, NULL}};
  nssi_rt_client directory = {runtime, 0, number};
  int code = nssi_rt_connect_to(runtime, where, 10000, &directory.peer);
  if (code == NESSIE_OK) code = directory_list_1(&directory, &all, NULL, &found);
  *count = found.instances.instances_len;
  xdr_free((xdrproc_t)xdr_listing, (char *)&found);
  return code;
}

static int start(nessie_provider *provider, void **state) {
  const char *name = nessie_provider_name(provider), *fault = nessie_provider_setting(provider, "fail");
  uint32_t number = 0;
  const char *directory = nessie_provider_uses(provider, "directory", &number);
  u_int count = 0;
  if (fault != NULL) {
    nessie_provider_fail(provider, fault);
    return NESSIE_REFUSED;
  }
  if (directory != NULL) {
    (void)say(name, "asks the directory");
    const int code = list_names(nessie_provider_runtime(provider), directory, number, &count);
    if (code != NESSIE_OK) nessie_provider_fail(provider, nssi_rt_last_error());
    if (code != NESSIE_OK) return code;
    printf("%s: the directory has %u names\n", name, count);
  }
  *state = provider;
  return say(name, "started") == 0 ? NESSIE_OK : NESSIE_IO;
}

static const char *describe(void *state) { return state != NULL ? "is here" : ""; }
static void quiesce(void *state) { (void)say(nessie_provider_name(state), "quiesced"); }
static void stop(void *state) { (void)say(nessie_provider_name(state), "stopped"); }

const nessie_module *nessie_module_entry(void) {
  static const nessie_module module = {.abi = NESSIE_MODULE_ABI,
                                       .version = GUEST_VERSION,
                                       .type = "guest",
                                       .uses = "directory?",
                                       .start = start,
                                       .describe = describe,
                                       .quiesce = quiesce,
                                       .stop = stop};
  return &module;
}
