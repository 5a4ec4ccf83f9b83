/* SPDX-License-Identifier: BSD-3-Clause */
/* The header is C, and its constants are what C programs expect. */
#include <nnti/nnti.h>

int nnti_header_compiles_as_c(void) {
  NNTI_buffer_t buffer = {0};
  return NNTI_BUFFER_C_POINTER(&buffer) != 0 || NNTI_SEND_SRC != NNTI_PUT_SRC || NNTI_ETIMEDOUT != 1004;
}
