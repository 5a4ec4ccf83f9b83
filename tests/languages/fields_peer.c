/* SPDX-License-Identifier: BSD-3-Clause */
/* README.md says what peers do. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fields_c.h"

static int complain(void) {
  printf("error: %s\n", nssi_rt_last_error());
  return 1;
}

static int serve(nssi_rt_runtime *runtime) {
  if (fields_offer(runtime) != NESSIE_OK) return complain();
  puts(nssi_rt_url(runtime));
  fflush(stdout);
  return nssi_rt_run(runtime) == NESSIE_OK ? 0 : complain();
}

/* `@FILE`: the line in FILE, which somebody writes meanwhile. Empty: nobody did, for 20 s. */
static const char *url_of(const char *word) {
  static char line[1024];
  if (word[0] != '@') return word;
  for (int i = 0; i < 200 && line[0] == '\0'; ++i) {
    FILE *file = fopen(word + 1, "r");
    if (file == NULL)
      nanosleep(&(struct timespec){0, 100000000}, NULL);
    else if (fgets(line, sizeof line, file) == NULL || fclose(file) != 0)
      return "";
  }
  line[strcspn(line, "\n")] = '\0';
  return line;
}

static int call(nssi_rt_runtime *runtime, const char *url) {
  uint64_t peer = 0;
  if (nssi_rt_connect(runtime, url, 20000, &peer) != NESSIE_OK) return complain();
  const int faults = fields_check_all(runtime, peer);
  printf("%d faults\n", faults);
  fflush(stdout);
  return faults == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  const int serves = argc == 3 && strcmp(argv[1], "serve") == 0;
  nssi_rt_options options = {0};
  nssi_rt_runtime *runtime = NULL;
  if (!serves && (argc != 4 || strcmp(argv[1], "call") != 0)) return 2;
  options.transports = argv[2];
  options.connects_only = !serves;
  if (nssi_rt_open(&options, &runtime) != NESSIE_OK) return complain();
  const int failed = serves ? serve(runtime) : call(runtime, url_of(argv[3]));
  return nssi_rt_close(runtime) == NESSIE_OK ? failed : complain();
}
