/* SPDX-License-Identifier: BSD-3-Clause */
/* The header is C, and its constants are what C programs expect. */
#include <nnti/nnti.h>

_Static_assert(NNTI_OK == 0 && NNTI_EIO == 1001 && NNTI_EPERM == 1012 && NNTI_EINTR == 1013 && NNTI_EAGAIN == 1015 &&
                   NNTI_EDROPPED == 1016 && NNTI_EENCODE == 1018 && NNTI_EPEERLOST == 1019,
               "programs are compiled with these numbers");

int nnti_header_compiles_as_c(void) {
  NNTI_buffer_t buffer = {0};
  return NNTI_BUFFER_C_POINTER(&buffer) != 0 || NNTI_SEND_SRC != NNTI_PUT_SRC;
}
