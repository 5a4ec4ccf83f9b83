/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints where this process can be reached. */
#include <nnti/nnti.h>

#include <stdio.h>

int main(void) {
  NNTI_transport_t transport;
  char url[1024];
  NNTI_result_t result = NNTI_init(NNTI_TRANSPORT_SHM, NULL, &transport);
  if (result == NNTI_OK) result = NNTI_get_url(&transport, url, sizeof url);
  if (result == NNTI_OK) printf("%s\n", url);
  if (result == NNTI_OK) result = NNTI_fini(&transport);
  return result == NNTI_OK ? 0 : 1;
}
