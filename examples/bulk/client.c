/* SPDX-License-Identifier: BSD-3-Clause */
/* Lends the service of arrays.x an array, which it pulls and pushes as it likes until the call is over.
 *
 *   $ build/bulk_server_c &
 *   $ build/bulk_client_c
 *   1000000 elements, their sum 250000250000.0
 *   the first is 0.5, the last 500000.0
 *   $ kill %1; rm bulk.contact
 */
#include <arrays_rpc.h>
#include <nssi/discovery.h>

#include <stdio.h>

enum { COUNT = 1000000 };
static double array[COUNT];

/* Nobody reaches the array without the description in the request, nor beyond its bounds, nor against its rights. */
static int scale(const nssi_rt_client *service) {
  nssi_rt_buffer *lent = NULL;
  double sum;
  int code = nssi_rt_register(service->runtime, array, sizeof array, NSSI_RT_READ_WRITE, &lent);
  if (code != NESSIE_OK) return code;
  code = arrays_scale_1(service, 0.5, lent, NULL, &sum);
  if (code == NESSIE_OK) {
    printf("%d elements, their sum %.1f\n", COUNT, sum);
    printf("the first is %.1f, the last %.1f\n", array[0], array[COUNT - 1]);
  }
  (void)nssi_rt_free_buffer(lent);
  return code;
}

int main(void) {
  const nssi_rt_options only_calls = {.connects_only = 1};
  nssi_rt_client service = {NULL, 0, 0};
  for (int i = 0; i < COUNT; ++i) array[i] = i + 1;
  int code = nssi_rt_open(&only_calls, &service.runtime);
  if (code == NESSIE_OK) code = nssi_rt_connect_to(service.runtime, "file:bulk.contact", 10000, &service.peer);
  if (code == NESSIE_OK) code = scale(&service);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nssi_rt_last_error());
  (void)nssi_rt_close(service.runtime);
  return code != NESSIE_OK;
}
