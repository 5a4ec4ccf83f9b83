/* SPDX-License-Identifier: BSD-3-Clause */
/* A process in C: `atlas_c_peer serve shm` prints its URL and serves until it, or its parent, is killed; `atlas_c_peer
 * check shm URL` checks the service at that URL. Exit code 0: nothing failed. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "atlas_c.h"

static int complain(const char *what) {
  fprintf(stderr, "%s: %s\n", what, nssi_rt_last_error());
  return 1;
}

static int serve(nssi_rt_runtime *runtime) {
  if (atlas_offer(runtime) != NESSIE_OK) return complain("offer");
  printf("%s\n", nssi_rt_url(runtime));
  fflush(stdout);
  return nssi_rt_run(runtime) == NESSIE_OK ? 0 : complain("run");
}

static int check(nssi_rt_runtime *runtime, const char *url) {
  uint64_t peer = 0;
  if (nssi_rt_connect(runtime, url, 20000, &peer) != NESSIE_OK) return complain("connect");
  return atlas_check(runtime, peer) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  nssi_rt_options options = {0};
  nssi_rt_runtime *runtime = NULL;
  if (argc < 3 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return 2;
  options.transports = argv[2];
  if (nssi_rt_open(&options, &runtime) != NESSIE_OK) return complain("open");
  const int failed = strcmp(argv[1], "serve") == 0 ? serve(runtime) : argc > 3 ? check(runtime, argv[3]) : 2;
  return nssi_rt_close(runtime) == NESSIE_OK ? failed : complain("close");
}
