/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches what a program allocates that is linked with --wrap=malloc, calloc and realloc. */
#ifndef GOLDEN_MEMORY_H
#define GOLDEN_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void golden_watch_memory(void);
/* The largest that was asked for since. */
size_t golden_largest_block(void);

/* So many allocations succeed, then none; negative: all do. */
void golden_fail_after(long allocations);

#ifdef __cplusplus
}
#endif

#endif
