/* SPDX-License-Identifier: BSD-3-Clause */
/* What every language writes to a stream, and reads of it, in C. README.md. */
#include <nessie/streams.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, TIME_MS = 30000 };
static int faults = 0;

static void expect(int is_so, const char *what, int64_t step) {
  if (is_so) return;
  printf("step %lld: not so: %s\n", (long long)step, what);
  ++faults;
}

static void demand(int code, const char *what) {
  if (code == NESSIE_OK) return;
  printf("error: %s: %s: %s\n", what, nessie_code_name(code), nessie_stream_last_error());
  exit(1);
}

/* An element of t_TYPE, [3][4], as a number of that type. */
static void set_number(int32_t type, void *at, int value) {
  switch (type) {
    case NESSIE_STREAM_INT8:
    case NESSIE_STREAM_UINT8: *(int8_t *)at = (int8_t)value; break;
    case NESSIE_STREAM_INT16:
    case NESSIE_STREAM_UINT16: *(int16_t *)at = (int16_t)value; break;
    case NESSIE_STREAM_INT32:
    case NESSIE_STREAM_UINT32: *(int32_t *)at = value; break;
    case NESSIE_STREAM_INT64:
    case NESSIE_STREAM_UINT64: *(int64_t *)at = value; break;
    case NESSIE_STREAM_FLOAT: *(float *)at = (float)value; break;
    default: *(double *)at = value;
  }
}

static void make_table(int32_t type, int64_t step, unsigned char *bytes) {
  const uint64_t size = nessie_stream_type_size(type);
  for (int i = 0; i < 12; ++i) set_number(type, bytes + (uint64_t)i * size, (int)(20 * step + i + type));
}

static void make_grid(int64_t step, double grid[4][5][6]) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 6; ++k) grid[i][j][k] = (double)(1000 * step + 100 * i + 10 * j + k);
}

static const int64_t none[3] = {0, 0, 0}, table_shape[2] = {3, 4}, grid_shape[3] = {4, 5, 6}, names_shape[2] = {2, 6},
                     mask_shape[1] = {4}, partial_shape[1] = {6};
static const char names[2][6] = {"first ", "second"};

static void name_table(int32_t type, char *name) { sprintf(name, "t_%s", nessie_stream_type_name(type)); }
static int is_number(int32_t type) { return type != NESSIE_STREAM_CHAR; }

/* --- writing ------------------------------------------------------------------------------------------------------- */

static void define(nessie_stream *out, const char *name, int32_t type, int32_t ndims, const int64_t *shape,
                   const void *fill, int32_t is_constant) {
  const nessie_stream_variable variable = {name, type, ndims, shape, fill, is_constant};
  demand(nessie_stream_define(out, &variable), name);
}

static void describe(nessie_stream *out) {
  const float fill = -1;
  const int32_t number = 42;
  const double range[2] = {0, 3999};
  const nessie_stream_attribute attributes[] = {
      {NULL, "title", NESSIE_STREAM_CHAR, 17, "of every language"},
      {NULL, "number", NESSIE_STREAM_INT32, 1, &number},
      {"grid", "units", NESSIE_STREAM_CHAR, 1, "K"},
      {"grid", "range", NESSIE_STREAM_DOUBLE, 2, range},
  };
  char name[16];
  for (int32_t type = NESSIE_STREAM_INT8; type <= NESSIE_STREAM_UINT64; ++type) {
    name_table(type, name);
    if (is_number(type)) define(out, name, type, 2, table_shape, NULL, 0);
  }
  define(out, "grid", NESSIE_STREAM_DOUBLE, 3, grid_shape, NULL, 0);
  define(out, "time", NESSIE_STREAM_DOUBLE, 0, NULL, NULL, 0);
  define(out, "names", NESSIE_STREAM_CHAR, 2, names_shape, NULL, 0);
  define(out, "mask", NESSIE_STREAM_INT32, 1, mask_shape, NULL, 1);
  define(out, "partial", NESSIE_STREAM_FLOAT, 1, partial_shape, &fill, 0);
  for (int i = 0; i < 4; ++i) demand(nessie_stream_set_attribute(out, &attributes[i]), attributes[i].name);
}

static void put_tables(nessie_stream *out, int64_t step) {
  unsigned char bytes[12 * 8];
  char name[16];
  for (int32_t type = NESSIE_STREAM_INT8; type <= NESSIE_STREAM_UINT64; ++type) {
    if (!is_number(type)) continue;
    name_table(type, name);
    make_table(type, step, bytes);
    demand(nessie_stream_put(out, name, 2, none, table_shape, bytes), name);
  }
}

/* Half of it is computed where it goes, half is lent. */
static void put_grid(nessie_stream *out, double grid[4][5][6]) {
  const int64_t half[3] = {2, 5, 6}, second[3] = {2, 0, 0};
  void *memory = NULL;
  demand(nessie_stream_span(out, "grid", 3, none, half, &memory), "span");
  memcpy(memory, grid, 2 * 5 * 6 * sizeof(double));
  demand(nessie_stream_put_lent(out, "grid", 3, second, half, grid[2]), "lend");
}

static void write_step(nessie_stream *out, int64_t step) {
  const int64_t two[1] = {2}, so_many[1] = {step + 1};
  const int32_t mask[4] = {1, 2, 3, 4};
  const int64_t growing[STEPS] = {0, 1, 2};
  const double time = 0.5 * (double)step;
  const float partial[2] = {7, 8};
  double grid[4][5][6];
  int32_t state = NESSIE_STREAM_END;
  demand(nessie_stream_begin_step(out, TIME_MS, &state), "begin a step");
  expect(state == NESSIE_STREAM_STEP_OK && nessie_stream_step(out) == (uint64_t)step, "the step's number", step);
  define(out, "growing", NESSIE_STREAM_INT64, 1, so_many, NULL, 0);
  make_grid(step, grid);
  put_tables(out, step);
  put_grid(out, grid);
  demand(nessie_stream_put(out, "time", 0, NULL, NULL, &time), "time");
  demand(nessie_stream_put(out, "names", 2, none, names_shape, names), "names");
  if (step == 0) demand(nessie_stream_put(out, "mask", 1, none, mask_shape, mask), "mask");
  demand(nessie_stream_put(out, "partial", 1, two, two, partial), "partial");
  demand(nessie_stream_put(out, "growing", 1, none, so_many, growing), "growing");
  demand(nessie_stream_end_step(out, TIME_MS), "end a step");
}

static void write_stream(const char *name) {
  nessie_stream *out = NULL;
  demand(nessie_stream_open(name, NESSIE_STREAM_WRITE, 0, 1, NULL, TIME_MS, &out), "open for writing");
  describe(out);
  for (int64_t step = 0; step < STEPS; ++step) write_step(out, step);
  demand(nessie_stream_close(out, TIME_MS), "close");
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

static void get(nessie_stream *in, const char *name, int32_t ndims, const int64_t *start, const int64_t *count,
                void *destination, uint64_t size_bytes) {
  demand(nessie_stream_get(in, name, ndims, start, count, destination, size_bytes, TIME_MS), name);
}

static void check_variables(nessie_stream *in, int64_t step) {
  const nessie_stream_variable *all = NULL, *grid = NULL, *growing = NULL, *partial = NULL;
  uint64_t count = 0;
  demand(nessie_stream_variables(in, &all, &count), "variables");
  expect(count == 16, "the number of variables", step);
  demand(nessie_stream_find(in, "grid", &grid), "find grid");
  expect(grid->type == NESSIE_STREAM_DOUBLE && grid->ndims == 3 && grid->fill == NULL && !grid->is_constant &&
             memcmp(grid->shape, grid_shape, sizeof grid_shape) == 0,
         "the description of grid", step);
  demand(nessie_stream_find(in, "growing", &growing), "find growing");
  expect(growing->shape[0] == step + 1, "the shape that grows", step);
  demand(nessie_stream_find(in, "partial", &partial), "find partial");
  expect(partial->fill != NULL && *(const float *)partial->fill == -1, "the fill value", step);
  expect(nessie_stream_find(in, "nothing", &partial) == NESSIE_NOT_FOUND, "a variable that is not there", step);
}

static void check_attributes(nessie_stream *in, int64_t step) {
  const nessie_stream_attribute *it = NULL;
  demand(nessie_stream_find_attribute(in, NULL, "title", &it), "title");
  expect(it->count == 17 && memcmp(it->value, "of every language", 17) == 0, "the title", step);
  demand(nessie_stream_find_attribute(in, "", "number", &it), "number");
  expect(it->type == NESSIE_STREAM_INT32 && it->count == 1 && *(const int32_t *)it->value == 42, "the number", step);
  demand(nessie_stream_find_attribute(in, "grid", "units", &it), "units");
  expect(it->type == NESSIE_STREAM_CHAR && it->count == 1 && *(const char *)it->value == 'K', "the units", step);
  demand(nessie_stream_find_attribute(in, "grid", "range", &it), "range");
  expect(it->count == 2 && ((const double *)it->value)[1] == 3999, "the range", step);
}

static void check_tables(nessie_stream *in, int64_t step) {
  unsigned char bytes[12 * 8], wanted[12 * 8];
  char name[16];
  for (int32_t type = NESSIE_STREAM_INT8; type <= NESSIE_STREAM_UINT64; ++type) {
    if (!is_number(type)) continue;
    const uint64_t size = 12 * nessie_stream_type_size(type);
    name_table(type, name);
    make_table(type, step, wanted);
    get(in, name, 2, none, table_shape, bytes, size);
    expect(memcmp(bytes, wanted, size) == 0, name, step);
  }
}

static void check_grid(nessie_stream *in, int64_t step) {
  const int64_t from[3] = {1, 2, 3}, count[3] = {2, 2, 2};
  double wanted[4][5][6], got[4][5][6], box[2][2][2];
  nessie_stream_figures_result figures;
  make_grid(step, wanted);
  get(in, "grid", 3, none, grid_shape, got, sizeof got);
  expect(memcmp(got, wanted, sizeof got) == 0, "grid", step);
  get(in, "grid", 3, from, count, box, sizeof box);
  for (int i = 0; i < 8; ++i)
    expect(box[i / 4][i / 2 % 2][i % 2] == wanted[1 + i / 4][2 + i / 2 % 2][3 + i % 2], "a box of grid", step);
  demand(nessie_stream_figures(in, "grid", 3, none, grid_shape, TIME_MS, &figures), "figures");
  expect(figures.minimum == wanted[0][0][0] && figures.maximum == wanted[3][4][5] && figures.elements == 120 &&
             figures.mean > figures.minimum && figures.mean < figures.maximum,
         "the figures", step);
  expect(nessie_stream_get(in, "grid", 3, from, grid_shape, got, sizeof got, TIME_MS) == NESSIE_OUT_OF_RANGE,
         "a box outside", step);
}

static void check_others(nessie_stream *in, int64_t step) {
  const int64_t so_many[1] = {step + 1};
  char texts[2][6];
  int32_t mask[4];
  int64_t growing[STEPS];
  float partial[6];
  double time = -1;
  get(in, "time", 0, NULL, NULL, &time, sizeof time);
  expect(time == 0.5 * (double)step, "time", step);
  get(in, "names", 2, none, names_shape, texts, sizeof texts);
  expect(memcmp(texts, names, sizeof names) == 0, "names", step);
  get(in, "mask", 1, none, mask_shape, mask, sizeof mask);
  expect(mask[0] == 1 && mask[3] == 4, "mask", step);
  get(in, "partial", 1, none, partial_shape, partial, sizeof partial);
  expect(partial[1] == -1 && partial[2] == 7 && partial[3] == 8 && partial[4] == -1, "partial", step);
  get(in, "growing", 1, none, so_many, growing, sizeof growing);
  expect(growing[0] == 0 && growing[step] == step, "growing", step);
}

static void read_stream(const char *name) {
  nessie_stream *in = NULL;
  int32_t state = NESSIE_STREAM_STEP_OK;
  int64_t step = 0;
  demand(nessie_stream_open(name, NESSIE_STREAM_READ, 0, 1, NULL, TIME_MS, &in), "open for reading");
  for (;; ++step) {
    demand(nessie_stream_begin_step(in, TIME_MS, &state), "begin a step");
    if (state != NESSIE_STREAM_STEP_OK) break;
    expect(nessie_stream_step(in) == (uint64_t)step, "the step's number", step);
    check_variables(in, step);
    check_attributes(in, step);
    check_tables(in, step);
    check_grid(in, step);
    check_others(in, step);
    demand(nessie_stream_end_step(in, 0), "end a step");
  }
  expect(state == NESSIE_STREAM_END && step == STEPS, "the stream's end", step);
  demand(nessie_stream_close(in, TIME_MS), "close");
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: streams_peer_c write|read|both NAME\n"), 2;
  if (strcmp(argv[1], "read") != 0) write_stream(argv[2]);
  if (strcmp(argv[1], "write") != 0) read_stream(argv[2]);
  printf("%d faults\n", faults);
  return faults != 0;
}
