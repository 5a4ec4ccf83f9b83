/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * E3SM's pattern (its F and I cases): a history file of about 1,100 variables with five attributes each. Columns of the
 * atmosphere or the land belong to processes in runs of 1 to 30 that look as if they were random; a process writes all
 * of its runs of a variable by one ncmpi_iput_varn_…, and all variables of all records by one ncmpi_wait_all.
 *
 * Build:   mpicc -O2 climate.c pattern.c -o climate -lpnetcdf
 * Run:     mpiexec -n 8 ./climate --prefix /tmp/e3sm --verify
 * Options: --columns N (1024)   --levels N (12)   --surface N  variables (time, column) (700)
 *          --profiles N  variables (time, level, column) (346)   --scalars N  variables (time), of process 0 (32)
 *          --fixed N  variables (column), which have no records (22)   --steps S  records (2)
 *          and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kAttributes = 5, kLongestRun = 30 };

typedef enum { kFixed, kScalar, kSurface, kProfile, kKinds } Kind;

/* A shape that variables share, and the runs of it that are this process's. */
typedef struct {
  int variables, ndims, records; /* records: its first axis is time */
  int runs;
  MPI_Offset **starts, **counts, elements; /* of this process, in a record */
} Shape;

typedef struct {
  MPI_Offset columns, levels;
  Shape shapes[kKinds];
  int variables, *ids;
  float *values; /* of all requests, one after the other */
} Settings;

static void add_run(Shape *shape, MPI_Offset level, MPI_Offset column, MPI_Offset length) {
  const int at = shape->runs++;
  shape->starts = realloc(shape->starts, (size_t)shape->runs * sizeof *shape->starts);
  shape->counts = realloc(shape->counts, (size_t)shape->runs * sizeof *shape->counts);
  if (!shape->starts || !shape->counts) die("not enough memory", "");
  shape->starts[at] = allocate(3, sizeof(MPI_Offset));
  shape->counts[at] = allocate(3, sizeof(MPI_Offset));
  for (int axis = 0; axis < shape->ndims; axis++) {
    shape->starts[at][axis] = axis == 1 ? level : 0;
    shape->counts[at][axis] = 1;
  }
  shape->starts[at][shape->ndims - 1] = column;
  shape->counts[at][shape->ndims - 1] = length;
  shape->elements += length;
}

/* Every process draws the same numbers, and keeps the runs that fall to it: the same columns in all shapes. */
static void decompose(const Pattern *p, const Settings *s, Shape *shape) {
  const MPI_Offset levels = shape->ndims == 3 ? s->levels : 1;
  for (MPI_Offset level = 0; level < levels; level++) {
    unsigned state = 1;
    for (MPI_Offset column = 0; column < s->columns;) {
      MPI_Offset length = 1 + next_random(&state) % kLongestRun;
      if (length > s->columns - column) length = s->columns - column;
      if ((int)(next_random(&state) % (unsigned)p->processes) == p->rank) add_run(shape, level, column, length);
      column += length;
    }
  }
}

static void prepare(const Pattern *p, Settings *s) {
  MPI_Offset elements = 0;
  s->shapes[kFixed].ndims = s->shapes[kScalar].ndims = 1;
  s->shapes[kSurface].ndims = 2;
  s->shapes[kProfile].ndims = 3;
  for (Kind kind = kFixed; kind < kKinds; kind++) {
    Shape *shape = &s->shapes[kind];
    shape->records = kind != kFixed;
    if (kind != kScalar)
      decompose(p, s, shape);
    else if (p->rank == 0)
      add_run(shape, 0, 0, 1);
    elements += shape->elements * shape->variables * (shape->records ? p->steps : 1);
    s->variables += shape->variables;
  }
  s->ids = allocate(s->variables, sizeof(int));
  s->values = allocate(elements, sizeof(float));
}

static void put_attributes(int ncid, int variable, const char *name) {
  static const char *const units[4] = {"kg/m2/s", "K", "W/m2", "m/s"};
  const float missing = 1e36f;
  char text[128];
  snprintf(text, sizeof text, "what the model knows of %s, averaged over the time step", name);
  check(ncmpi_put_att_text(ncid, variable, "long_name", (MPI_Offset)strlen(text), text));
  check(ncmpi_put_att_text(ncid, variable, "units", (MPI_Offset)strlen(units[variable % 4]), units[variable % 4]));
  check(ncmpi_put_att_float(ncid, variable, "_FillValue", NC_FLOAT, 1, &missing));
  check(ncmpi_put_att_float(ncid, variable, "missing_value", NC_FLOAT, 1, &missing));
  check(ncmpi_put_att_text(ncid, variable, "cell_methods", 10, "time: mean"));
}

static int create(const Pattern *p, Settings *s) {
  static const char *const names[kKinds] = {"fixed", "scalar", "surface", "profile"};
  int ncid, time, level, column, next = 0;
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, "e3sm", 0), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  check(ncmpi_def_dim(ncid, "time", NC_UNLIMITED, &time));
  check(ncmpi_def_dim(ncid, "lev", s->levels, &level));
  check(ncmpi_def_dim(ncid, "ncol", s->columns, &column));
  const int axes[kKinds][3] = {{column}, {time}, {time, column}, {time, level, column}};
  for (Kind kind = kFixed; kind < kKinds; kind++)
    for (int i = 0; i < s->shapes[kind].variables; i++) {
      char name[64];
      snprintf(name, sizeof name, "%s_%04d", names[kind], i);
      check(ncmpi_def_var(ncid, name, NC_FLOAT, s->shapes[kind].ndims, axes[kind], &s->ids[next]));
      put_attributes(ncid, s->ids[next++], name);
    }
  check(ncmpi_enddef(ncid));
  return ncid;
}

/* Fills what this process has of a variable in a record, or counts what is not as it would be filled. */
static MPI_Offset walk_record(const Settings *s, const Shape *shape, int variable, int record, float *values,
                              int compare) {
  const int last = shape->ndims - 1;
  MPI_Offset differing = 0;
  for (int run = 0; run < shape->runs; run++) {
    const MPI_Offset level = last == 2 ? shape->starts[run][1] : 0;
    const MPI_Offset column = last == 0 && shape->records ? 0 : shape->starts[run][last];
    for (MPI_Offset i = 0; i < shape->counts[run][last]; i++, values++) {
      const float right = (float)value_of(variable, record, level * s->columns + column + i);
      if (compare)
        differing += *values != right;
      else
        *values = right;
    }
  }
  return differing;
}

typedef enum { kFill, kPut, kGet, kCompare } What;

/* What is to be done with one variable of a record: fill it, post it to the file, or from there, or compare. */
static MPI_Offset do_one(const Settings *s, const Shape *shape, int variable, int record, float *values, What what,
                         int ncid) {
  if (what == kFill || what == kCompare) return walk_record(s, shape, variable, record, values, what == kCompare);
  if (shape->runs == 0) return 0;
  for (int run = 0; shape->records && run < shape->runs; run++) shape->starts[run][0] = record;
  const int id = s->ids[variable];
  if (what == kPut)
    check(ncmpi_iput_varn_float(ncid, id, shape->runs, shape->starts, shape->counts, values, NULL));
  else
    check(ncmpi_iget_varn_float(ncid, id, shape->runs, shape->starts, shape->counts, values, NULL));
  return 0;
}

/* Returns how many values differ. */
static MPI_Offset do_all(const Pattern *p, const Settings *s, What what, int ncid) {
  float *values = s->values;
  MPI_Offset differing = 0;
  for (int record = 0; record < p->steps; record++) {
    int variable = 0;
    for (Kind kind = kFixed; kind < kKinds; kind++) {
      const Shape *shape = &s->shapes[kind];
      for (int i = 0; i < shape->variables; i++, variable++) {
        if (record > 0 && !shape->records) continue;
        differing += do_one(s, shape, variable, record, values, what, ncid);
        values += shape->elements;
      }
    }
  }
  return differing;
}

static MPI_Offset differing_in_file(const Pattern *p, const Settings *s) {
  int ncid;
  check(ncmpi_open(MPI_COMM_WORLD, file_name(p, "e3sm", 0), NC_NOWRITE, MPI_INFO_NULL, &ncid));
  do_all(p, s, kGet, ncid);
  check(ncmpi_wait_all(ncid, NC_REQ_ALL, NULL, NULL));
  check(ncmpi_close(ncid));
  return do_all(p, s, kCompare, -1);
}

static double bytes_of(const Pattern *p, const Settings *s) {
  const Shape *shapes = s->shapes;
  return (double)sizeof(float) *
         ((double)(s->columns * shapes[kFixed].variables) +
          p->steps * ((double)(s->columns * shapes[kSurface].variables) + shapes[kScalar].variables +
                      (double)(s->columns * s->levels * shapes[kProfile].variables)));
}

static void release(Settings *s) {
  for (Kind kind = kFixed; kind < kKinds; kind++) {
    for (int run = 0; run < s->shapes[kind].runs; run++) {
      free(s->shapes[kind].starts[run]);
      free(s->shapes[kind].counts[run]);
    }
    free(s->shapes[kind].starts);
    free(s->shapes[kind].counts);
  }
  free(s->ids);
  free(s->values);
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 2);
  Settings s = {.columns = number_option(argc, argv, "--columns", 1024),
                .levels = number_option(argc, argv, "--levels", 12)};
  MPI_Offset differing = 0;
  s.shapes[kFixed].variables = number_option(argc, argv, "--fixed", 22);
  s.shapes[kScalar].variables = number_option(argc, argv, "--scalars", 32);
  s.shapes[kSurface].variables = number_option(argc, argv, "--surface", 700);
  s.shapes[kProfile].variables = number_option(argc, argv, "--profiles", 346);
  if (s.columns < 1 || s.levels < 1) die("--columns and --levels must be positive", "");
  prepare(&p, &s);
  pattern_ready(&p, argc, argv);
  do_all(&p, &s, kFill, -1);
  compute(&p);
  begin_io(&p);
  int ncid = create(&p, &s);
  do_all(&p, &s, kPut, ncid);
  check(ncmpi_wait_all(ncid, NC_REQ_ALL, NULL, NULL));
  check(ncmpi_close(ncid));
  end_io(&p, &p.written, bytes_of(&p, &s));
  end_run(&p);
  if (p.verify) differing = differing_in_file(&p, &s);
  release(&s);
  pattern_end(&p, differing);
  return 0;
}
