/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts with counter.c, beside Nessie's own staging: a composition that fits on the command line.
 *
 *   $ nessied --services staging,counter_c --module build/libcounter_c.so --announce file:job.contact \
 *       --set counter_c.begin=40 > nessied.url &
 *   $ build/counter_client_c
 *   42
 *   NOT_FOUND: nobody has counted pears
 *   $ kill %1; wait
 */
#include <counter_rpc.h>
#include <nssi/discovery.h>

#include <stdio.h>

static int count(const nssi_rt_client *counters) {
  quad_t value;
  int code = counter_add_1(counters, "apples", 2, NULL, &value);
  if (code != NESSIE_OK) return code;
  printf("%lld\n", (long long)value);
  code = counter_value_1(counters, "pears", NULL, &value);
  printf("%s: %s\n", nessie_code_name(code), code == NESSIE_OK ? "some pears" : nssi_rt_last_error());
  return NESSIE_OK;
}

int main(void) {
  const nssi_rt_options only_calls = {.connects_only = 1};
  nssi_rt_client counters = {NULL, 0, 0};
  int code = nssi_rt_open(&only_calls, &counters.runtime);
  if (code == NESSIE_OK) code = nssi_rt_connect_to(counters.runtime, "file:job.contact", 10000, &counters.peer);
  if (code == NESSIE_OK) code = count(&counters);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nssi_rt_last_error());
  (void)nssi_rt_close(counters.runtime);
  return code != NESSIE_OK;
}
