/* SPDX-License-Identifier: BSD-3-Clause */
/* fields.x in C: the service, and what a client can do with one, whatever language that is in. */
#ifndef FIELDS_C_H
#define FIELDS_C_H

#include <nssi/runtime.h>

/* Offers version 1 at provider 0, and version 2 at provider 5. It keeps `runtime`. A nessie_code. */
int fields_offer(nssi_rt_runtime *runtime);

/* Calls everything; prints what is not as it should be, and returns how often. */
int fields_check_all(nssi_rt_runtime *runtime, uint64_t peer);

#endif
