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
/* So many succeed, one fails, and then all succeed. */
void golden_fail_once_after(long allocations);
/* Whether one has failed since either was called. */
int golden_has_failed(void);

#ifdef __cplusplus
}
#endif

#endif
