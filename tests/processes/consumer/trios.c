/* SPDX-License-Identifier: BSD-3-Clause */
/* A program written for Trios: prints where this process can be reached. */
#include <Trios_logger.h>
#include <Trios_nnti.h>

#include <stdio.h>

int main(void) {
  NNTI_transport_t transport;
  NNTI_result_t result = NNTI_init(NNTI_TRANSPORT_LOCAL, NULL, &transport);
  if (result != NNTI_OK) log_error(LOG_UNDEFINED, "%s", nnti_last_error());
  if (result == NNTI_OK) printf("%s\n", transport.me.url);
  if (result == NNTI_OK) result = NNTI_fini(&transport);
  return result == NNTI_OK ? 0 : 1;
}
