/* SPDX-License-Identifier: BSD-3-Clause */
/* What late_library.c has. */
#ifndef NESSIE_TESTS_LATE_H
#define NESSIE_TESTS_LATE_H

#include "setups.h"

void late_begin(void); /* MPI is initialised */
void late_open(void);  /* opens a file, which is closed at the very end */

#endif
