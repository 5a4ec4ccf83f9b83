/* SPDX-License-Identifier: BSD-3-Clause */
/* A service that announces itself at the place that it is given, and finds itself there. */
#include <stdio.h>

#include <nssi/discovery.h>

static void nothing(void *context, nssi_rt_request *request) {
  (void)context;
  nssi_rt_reply(request, NULL, 0);
}

static void show(const char *url, void *context) {
  (void)context;
  printf("found %s\n", url);
}

int main(int argc, char **argv) {
  const nssi_rt_options options = {.transports = "shm"};
  const nssi_rt_operation operation = {.program = 7, .version = 1, .op = 1, .name = "nothing", .handler = nothing};
  nssi_rt_runtime *runtime = NULL;
  if (argc != 2) return 2;
  if (nssi_rt_open(&options, &runtime) == NESSIE_OK && nssi_rt_add_operation(runtime, &operation) == NESSIE_OK &&
      nssi_rt_announce(runtime, argv[1], "consumer", 5000) == NESSIE_OK &&
      nssi_rt_find(runtime, argv[1], 5000, show, NULL, NULL) == NESSIE_OK && nssi_rt_close(runtime) == NESSIE_OK)
    return 0;
  printf("error: %s\n", nssi_rt_last_error());
  return 1;
}
