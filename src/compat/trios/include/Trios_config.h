/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs written for Trios 12 ask of its configuration: Nessie's answers. Transports are found at run time;
 * NNTI_DEFAULT_TRANSPORT reaches each peer by the best that there is. */
#ifndef TRIOS_CONFIG_H
#define TRIOS_CONFIG_H

#define HAVE_TRIOS_PTHREAD 1
#define HAVE_TRIOS_PTHREAD_H 1
#define HAVE_TRIOS_PTHREAD_MUTEX_INIT 1
#define HAVE_TRIOS_CLOCK_GETTIME 1
#define HAVE_TRIOS_GETTIMEOFDAY 1
#define HAVE_TRIOS_UINT32_T 1

#endif
