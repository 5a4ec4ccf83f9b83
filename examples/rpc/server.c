/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves roots.x until it is killed. client.c has the commands. */
#include <nssi/discovery.h>
#include <roots_rpc.h>

#include <math.h>
#include <stdio.h>

/* Each request has a user-level thread of its own: while this one sleeps, others go on. */
static int root(void *runtime, nssi_rt_request *request, double number, u_int after_ms, double *result) {
  if (number < 0)
    return nssi_rt_reply_error(request, NESSIE_INVALID_ARGUMENT, NSSI_RT_SCOPE_OPERATION, 0,
                               "no root of a negative number: take its absolute");
  *result = sqrt(number);
  return nssi_rt_sleep(runtime, (int32_t)after_ms);
}

int main(void) {
  static roots_1_service service = {.root_1 = root};
  nssi_rt_runtime *runtime = NULL;
  int code = nssi_rt_open(NULL, &runtime);
  service.context = runtime; /* the function's first argument */
  if (code == NESSIE_OK) code = roots_1_add_to(runtime, 0, &service);
  if (code == NESSIE_OK) code = nssi_rt_announce(runtime, "file:rpc.contact", NULL, 10000);
  if (code == NESSIE_OK) code = nssi_rt_run(runtime);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nssi_rt_last_error());
  return code != NESSIE_OK;
}
