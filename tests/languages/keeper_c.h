/* SPDX-License-Identifier: BSD-3-Clause */
/* keeper.x in C: the service, and the checks of a client. Without keeper_rpc.h, whose names C++ could not bear. */
#ifndef KEEPER_C_H
#define KEEPER_C_H

#include <nssi/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Offers the service at provider 0. A nessie_code. */
int keeper_offer(nssi_rt_runtime *runtime);

/* Calls every operation of the service at `peer`. Prints what is not as it should be; returns how often. */
int keeper_check(nssi_rt_runtime *runtime, uint64_t peer);

#ifdef __cplusplus
}
#endif
#endif
