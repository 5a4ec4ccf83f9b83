/* SPDX-License-Identifier: BSD-3-Clause */
#include "golden_memory.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

static size_t largest;
static long allocations_left = -1;
static int fails_once, has_failed;

void golden_watch_memory(void) { largest = 0; }
size_t golden_largest_block(void) { return largest; }
void golden_fail_after(long allocations) {
  allocations_left = allocations;
  fails_once = has_failed = 0;
}
void golden_fail_once_after(long allocations) {
  golden_fail_after(allocations);
  fails_once = 1;
}
int golden_has_failed(void) { return has_failed; }

static int may_allocate(size_t size) {
  if (size > largest) largest = size;
  if (allocations_left < 0) return 1;
  if (allocations_left > 0) return --allocations_left, 1;
  if (fails_once) allocations_left = -1;
  has_failed = 1;
  return 0;
}

void *__wrap_malloc(size_t size) { return may_allocate(size) ? __real_malloc(size) : NULL; }
void *__wrap_calloc(size_t count, size_t size) {
  return may_allocate(count * size) ? __real_calloc(count, size) : NULL;
}
void *__wrap_realloc(void *block, size_t size) { return may_allocate(size) ? __real_realloc(block, size) : NULL; }
