/* SPDX-License-Identifier: BSD-3-Clause */
/* README.md says what peers do. */
#include <stdio.h>
#include <string.h>

#include <nssi/discovery.h>

#include "fields_c.h"

static int complain(void) {
  printf("error: %s\n", nssi_rt_last_error());
  return 1;
}

static int serve(nssi_rt_runtime *runtime, const char *where) {
  if (fields_offer(runtime) != NESSIE_OK) return complain();
  if (where != NULL && nssi_rt_announce(runtime, where, "fields", 20000) != NESSIE_OK) return complain();
  puts(nssi_rt_url(runtime));
  fflush(stdout);
  return nssi_rt_run(runtime) == NESSIE_OK ? 0 : complain();
}

static int call(nssi_rt_runtime *runtime, const char *what) {
  uint64_t peer = 0;
  if (nssi_rt_connect_to(runtime, what, 20000, &peer) != NESSIE_OK) return complain();
  const int faults = fields_check_all(runtime, peer);
  printf("%d faults\n", faults);
  fflush(stdout);
  return faults == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  const int serves = (argc == 3 || argc == 4) && strcmp(argv[1], "serve") == 0;
  nssi_rt_options options = {0};
  nssi_rt_runtime *runtime = NULL;
  if (!serves && (argc != 4 || strcmp(argv[1], "call") != 0)) return 2;
  options.transports = argv[2];
  options.connects_only = !serves;
  if (nssi_rt_open(&options, &runtime) != NESSIE_OK) return complain();
  const int failed = serves ? serve(runtime, argv[3]) : call(runtime, argv[3]);
  return nssi_rt_close(runtime) == NESSIE_OK ? failed : complain();
}
