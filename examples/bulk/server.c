/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves arrays.x until it is killed. The array may be larger than this process's memory: it is pulled and pushed a
 * piece at a time. client.c has the commands. */
#include <arrays_rpc.h>
#include <nssi/discovery.h>

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 65536 }; /* elements */

static int scale_with(double *piece, nssi_rt_request *request, double factor, double *sum) {
  const uint64_t count = nssi_rt_data_bytes(request) / sizeof *piece;
  for (uint64_t at = 0; at < count; at += PIECE) {
    const uint64_t elements = count - at < PIECE ? count - at : PIECE;
    int code = nssi_rt_get_data(request, piece, elements * sizeof *piece, at * sizeof *piece);
    if (code != NESSIE_OK) return code;
    for (uint64_t i = 0; i < elements; ++i) *sum += piece[i] *= factor;
    code = nssi_rt_put_data(request, piece, elements * sizeof *piece, at * sizeof *piece);
    if (code != NESSIE_OK) return code;
  }
  return NESSIE_OK;
}

/* What is large does not lie on the stack, which has 1 MiB. */
static int scale(void *context, nssi_rt_request *request, double factor, double *sum) {
  double *piece = malloc(PIECE * sizeof *piece);
  const int code = piece != NULL ? scale_with(piece, request, factor, sum) : NESSIE_NO_MEMORY;
  (void)context;
  free(piece);
  return code;
}

int main(void) {
  static const arrays_1_service service = {.scale_1 = scale};
  nssi_rt_runtime *runtime = NULL;
  int code = nssi_rt_open(NULL, &runtime);
  if (code == NESSIE_OK) code = arrays_1_add_to(runtime, 0, &service);
  if (code == NESSIE_OK) code = nssi_rt_announce(runtime, "file:bulk.contact", NULL, 10000);
  if (code == NESSIE_OK) code = nssi_rt_run(runtime);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nssi_rt_last_error());
  return code != NESSIE_OK;
}
