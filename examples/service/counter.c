/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.x, to be hosted by nessied: counter.cpp in C. Setting counter_c.begin: what new counters begin at. */
#include <counter_rpc.h>
#include <nessie/module.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100 };

typedef struct {
  counter_1_service service;
  int64_t begin;
  int count;
  struct {
    char name[32];
    quad_t value;
  } counters[MOST];
} all_counters;

/* The value of a counter, or null. All handlers run on one thread, and need no lock. */
static quad_t *find(all_counters *all, const char *name) {
  for (int i = 0; i < all->count; ++i)
    if (strcmp(all->counters[i].name, name) == 0) return &all->counters[i].value;
  return NULL;
}

static int add(void *state, nssi_rt_request *request, const char *name, quad_t amount, quad_t *result) {
  all_counters *all = state;
  quad_t *value = find(all, name);
  if (value == NULL && (all->count == MOST || strlen(name) >= sizeof all->counters->name))
    return nssi_rt_reply_error(request, NESSIE_NO_MEMORY, NSSI_RT_SCOPE_OPERATION, 0,
                               "there is room for 100 counters, with names of 31 characters");
  if (value == NULL) {
    strcpy(all->counters[all->count].name, name);
    value = &all->counters[all->count++].value;
    *value = all->begin;
  }
  *result = *value += amount;
  return NESSIE_OK;
}

static int value(void *state, nssi_rt_request *request, const char *name, quad_t *result) {
  const quad_t *found = find(state, name);
  char sentence[128];
  if (found != NULL) return *result = *found, NESSIE_OK;
  (void)snprintf(sentence, sizeof sentence, "nobody has counted %s", name);
  return nssi_rt_reply_error(request, NESSIE_NOT_FOUND, NSSI_RT_SCOPE_OPERATION, 0, sentence);
}

/* What nessied calls for each [[provider]] of this type. */
static int start(nessie_provider *provider, void **state) {
  const char *begin = nessie_provider_setting(provider, "begin");
  all_counters *all = calloc(1, sizeof *all);
  if (all == NULL) return NESSIE_NO_MEMORY;
  all->service = (counter_1_service){.add_1 = add, .value_1 = value, .context = all};
  all->begin = begin != NULL ? strtoll(begin, NULL, 10) : 0;
  const int code = counter_1_add_to(nessie_provider_runtime(provider), nessie_provider_number(provider), &all->service);
  if (code != NESSIE_OK) {
    nessie_provider_fail(provider, nssi_rt_last_error());
    free(all);
    return code;
  }
  *state = all;
  return NESSIE_OK;
}

const nessie_module *nessie_module_entry(void) {
  static const nessie_module module = {
      .abi = NESSIE_MODULE_ABI, .version = NESSIE_MODULE_VERSION, .type = "counter_c", .start = start, .destroy = free};
  return &module;
}
