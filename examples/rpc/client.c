/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls roots.x: one result, one error that the service tells, one deadline that passes.
 *
 *   $ build/rpc_server_c &
 *   $ build/rpc_client_c
 *   the root of 2 is 1.414
 *   refused: no root of a negative number: take its absolute
 *   the root of 1 is 1.000
 *   no answer within 100 ms
 *   $ kill %1; rm rpc.contact
 */
#include <nssi/discovery.h>
#include <roots_rpc.h>

#include <math.h>
#include <stdio.h>

/* Prints the root of a number, or of its absolute if the service refuses it. */
static int print_root(const nssi_rt_client *service, double number) {
  double root;
  const int code = roots_root_1(service, number, 0, NULL, &root);
  if (code == NESSIE_OK) printf("the root of %g is %.3f\n", number, root);
  if (code != NESSIE_INVALID_ARGUMENT) return code;
  printf("refused: %s\n", nssi_rt_last_error());
  return print_root(service, fabs(number));
}

static int call_all(const nssi_rt_client *service) {
  const nssi_rt_call_options impatient = {.timeout_ms = 100}; /* 30 s if none is given */
  int code = print_root(service, 2);
  if (code == NESSIE_OK) code = print_root(service, -1);
  if (code != NESSIE_OK) return code;
  code = roots_root_1(service, 3, 10000, &impatient, NULL);
  if (code != NESSIE_TIMED_OUT) return code == NESSIE_OK ? NESSIE_INTERNAL : code;
  printf("no answer within 100 ms\n");
  return NESSIE_OK;
}

int main(void) {
  const nssi_rt_options only_calls = {.connects_only = 1};
  nssi_rt_client service = {NULL, 0, 0};
  int code = nssi_rt_open(&only_calls, &service.runtime);
  if (code == NESSIE_OK) code = nssi_rt_connect_to(service.runtime, "file:rpc.contact", 10000, &service.peer);
  if (code == NESSIE_OK) code = call_all(&service);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nssi_rt_last_error());
  (void)nssi_rt_close(service.runtime);
  return code != NESSIE_OK;
}
