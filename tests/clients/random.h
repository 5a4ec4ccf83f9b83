/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers for programs whose ranks draw the same decisions. */
#pragma once

#include <stdint.h>

/* Of all ranks together; of each rank by itself. */
static uint64_t common_state, local_state;

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
/* A number in [0, n), the same on all ranks. */
static int common(int n) { return (int)(next(&common_state) % (uint64_t)n); }
