/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a stream: in each step an array, of which its readers, in any language, take what they want. See reader.c. */
#include <nessie/streams.h>

#include <stdio.h>

enum { STEPS = 3, NY = 48, NX = 64 };
static double field[NY][NX];

static int write_step(nessie_stream *out) {
  const int64_t start[2] = {0, 0}, count[2] = {NY, NX};
  int32_t state;
  int code = nessie_stream_begin_step(out, 60000, &state); /* waits until the servers have room */
  if (code != NESSIE_OK) return code;
  for (int y = 0; y < NY; ++y)
    for (int x = 0; x < NX; ++x) field[y][x] = 100 * (double)nessie_stream_step(out) + y + 0.01 * x;
  code = nessie_stream_put(out, "T", 2, start, count, field); /* of several ranks, each puts its boxes */
  return code == NESSIE_OK ? nessie_stream_end_step(out, 60000) : code;
}

int main(void) {
  const nessie_stream_variable field_of_t = {
      .name = "T", .type = NESSIE_STREAM_DOUBLE, .ndims = 2, .shape = (const int64_t[]){NY, NX}};
  const nessie_stream_attribute units = {
      .variable = "T", .name = "units", .type = NESSIE_STREAM_CHAR, .count = 1, .value = "K"};
  nessie_stream *out = NULL;
  int code = nessie_stream_open("flow", NESSIE_STREAM_WRITE, 0, 1, NULL, 30000, &out);
  if (code == NESSIE_OK) code = nessie_stream_define(out, &field_of_t);
  if (code == NESSIE_OK) code = nessie_stream_set_attribute(out, &units);
  for (int step = 0; step < STEPS && code == NESSIE_OK; ++step) code = write_step(out);
  if (code == NESSIE_OK) code = nessie_stream_close(out, 30000);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nessie_stream_last_error());
  return code != NESSIE_OK;
}
