/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving on a signal: once it has come, every NNTI_wait returns NNTI_ECANCELED. */
#ifndef TRIOS_SIGNAL_H
#define TRIOS_SIGNAL_H

#include "Trios_threads.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Catches SIGINT, SIGHUP, SIGTERM and SIGABRT from now on. Returns 0 or an errno. */
int trios_install_sighandler(void);
/* Whether one of them has come, or trios_abort() was called. */
int trios_exit_now(void);
void trios_abort(void);

#ifdef __cplusplus
}
#endif
#endif
