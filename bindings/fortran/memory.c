/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of Fortran of any rank and type, as memory. */
#include <ISO_Fortran_binding.h>
#include <stdint.h>

/* Where an array begins, and its bytes; -1: they do not lie one after the other. Of a scalar likewise. */
void nessie_fortran_memory(CFI_cdesc_t *array, void **begin, int64_t *size_bytes) {
  int64_t size = (int64_t)array->elem_len;
  for (int i = 0; i < array->rank; ++i) {
    if (array->dim[i].extent > 1 && array->dim[i].sm != size) size = -1;
    if (size < 0) break;
    size *= array->dim[i].extent;
  }
  *begin = array->base_addr;
  *size_bytes = size;
}
