/* SPDX-License-Identifier: BSD-3-Clause */
/* atlas.x and keeper.x in C: the services, and the checks of a client. Without atlas.h, whose macros C++ could not
 * bear. */
#ifndef ATLAS_C_H
#define ATLAS_C_H

#include <nssi/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Offers the service at provider 0; at provider 1 without ADD. It keeps `runtime`. A nessie_code. */
int atlas_offer(nssi_rt_runtime *runtime);

/* Calls every operation of the service at `peer` in every way that matters. Prints what is not as it should be; returns
 * how often. */
int atlas_check(nssi_rt_runtime *runtime, uint64_t peer);
/* What is particular to the service of atlas_offer(). */
int atlas_check_c_service(nssi_rt_runtime *runtime, uint64_t peer);

/* The same of keeper.x. */
int keeper_offer(nssi_rt_runtime *runtime);
int keeper_check(nssi_rt_runtime *runtime, uint64_t peer);

#ifdef __cplusplus
}
#endif
#endif
