/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads all steps of a stream: of each a box, and what the servers compute of it all.
 *
 *   $ nessie-streams > streams.url &
 *   $ build/streams_writer_c &
 *   $ build/streams_reader_c
 *   step 0: the mean of the box is 11.215 K, the maximum of all 47.63 K
 *   step 1: the mean of the box is 111.215 K, the maximum of all 147.63 K
 *   step 2: the mean of the box is 211.215 K, the maximum of all 247.63 K
 *   $ kill %1; wait
 */
#include <nessie/streams.h>

#include <stdio.h>

static int show_step(nessie_stream *in) {
  const int64_t start[2] = {10, 20}, count[2] = {3, 4}, none[2] = {0, 0};
  const nessie_stream_variable *field;
  const nessie_stream_attribute *units;
  nessie_stream_figures_result figures;
  double box[3][4], sum = 0;
  int code = nessie_stream_find(in, "T", &field);
  if (code == NESSIE_OK) code = nessie_stream_find_attribute(in, "T", "units", &units);
  if (code == NESSIE_OK) code = nessie_stream_get(in, "T", 2, start, count, box, sizeof box, 30000);
  if (code == NESSIE_OK) code = nessie_stream_figures(in, "T", 2, none, field->shape, 30000, &figures);
  if (code != NESSIE_OK) return code;
  for (int i = 0; i < 12; ++i) sum += box[i / 4][i % 4];
  printf("step %d: the mean of the box is %.3f %.*s, ", (int)nessie_stream_step(in), sum / 12, (int)units->count,
         (const char *)units->value);
  printf("the maximum of all %.2f %.*s\n", figures.maximum, (int)units->count, (const char *)units->value);
  return nessie_stream_end_step(in, 0);
}

int main(void) {
  nessie_stream *in = NULL;
  int32_t state = NESSIE_STREAM_STEP_OK;
  int code = nessie_stream_open("flow", NESSIE_STREAM_READ, 0, 1, NULL, 30000, &in);
  while (code == NESSIE_OK) {
    code = nessie_stream_begin_step(in, 30000, &state);
    if (code != NESSIE_OK || state != NESSIE_STREAM_STEP_OK) break;
    code = show_step(in);
  }
  if (code == NESSIE_OK && state == NESSIE_STREAM_NOT_YET) fprintf(stderr, "no further step has come\n");
  if (code == NESSIE_OK) code = nessie_stream_close(in, 30000);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nessie_stream_last_error());
  return code != NESSIE_OK || state != NESSIE_STREAM_END;
}
