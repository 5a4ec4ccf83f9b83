/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A PnetCDF program made up from a seed: definitions, reads and writes of every form, with good and bad arguments.
 * It prints each call's code and a hash of what each call returned, and leaves a file. Run natively and under
 * `nessie run`, output and file must be the same.
 *
 *   mpiexec -n 3 random_program SEED FILE [OPERATIONS]
 *
 * All ranks draw collective decisions from one stream and local ones from another. Ranks never write the same element
 * in one step, and every element is written as soon as it exists: everything printed is determined by the seed. Of
 * several processes no bytes are left between variables: natively these may take what a buffer held.
 */
#include "random.h"

#include <inttypes.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxVars = 8, kMaxDims = 6, kMaxRank = 4, kMaxElements = 4096, kMaxRequests = 16 };

static int rank, nprocs;
static char *transcript;
static size_t transcript_size, transcript_used;

static struct {
  int id, format, ndims, nvars, unlimited, records, fill, dimids[kMaxDims], varids[kMaxVars];
  MPI_Offset dim_length[kMaxDims];
  struct {
    nc_type type;
    int ndims, dims[kMaxRank];
  } vars[kMaxVars];
} file;

/* A number in [0, n), each rank its own. */
static int local(int n) { return (int)(next(&local_state) % (uint64_t)n); }

static void say(const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (transcript_used + (size_t)n + 1 > transcript_size) {
    transcript_size = 2 * (transcript_size + (size_t)n + 1024);
    transcript = realloc(transcript, transcript_size);
  }
  memcpy(transcript + transcript_used, line, (size_t)n + 1);
  transcript_used += (size_t)n;
  if (getenv("RANDOM_PROGRAM_VERBOSE")) fprintf(stderr, "%d: %s", rank, line);
}

static uint64_t hash(const void *data, size_t size) {
  const unsigned char *bytes = data;
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 1099511628211u;
  return h;
}

static const nc_type kTypes[] = {NC_BYTE,  NC_CHAR,   NC_SHORT, NC_INT,   NC_FLOAT, NC_DOUBLE,
                                 NC_UBYTE, NC_USHORT, NC_UINT,  NC_INT64, NC_UINT64};

static MPI_Datatype memory_type(int k) {
  static const int n = 11;
  switch (k % n) {
    case 0: return MPI_SIGNED_CHAR;
    case 1: return MPI_UNSIGNED_CHAR;
    case 2: return MPI_SHORT;
    case 3: return MPI_UNSIGNED_SHORT;
    case 4: return MPI_INT;
    case 5: return MPI_UNSIGNED;
    case 6: return MPI_FLOAT;
    case 7: return MPI_LONG_LONG_INT;
    case 8: return MPI_UNSIGNED_LONG_LONG;
    case 9: return MPI_LONG;
    default: return MPI_DOUBLE;
  }
}

/* Fills `n` elements with small numbers, now and then with one that other types cannot hold. */
static void make_values(MPI_Datatype type, void *buffer, MPI_Offset n, int with_extremes) {
  for (MPI_Offset i = 0; i < n; i++) {
    double v = (double)(local(100)) + (type == MPI_FLOAT || type == MPI_DOUBLE ? 0.25 : 0);
    if (with_extremes && local(40) == 0) v = local(2) ? 1e5 : -7;
    if (type == MPI_SIGNED_CHAR)
      ((signed char *)buffer)[i] = (signed char)(int)v;
    else if (type == MPI_UNSIGNED_CHAR)
      ((unsigned char *)buffer)[i] = (unsigned char)(int)v;
    else if (type == MPI_CHAR)
      ((char *)buffer)[i] = (char)('a' + (int)i % 26);
    else if (type == MPI_SHORT)
      ((short *)buffer)[i] = (short)(int)v;
    else if (type == MPI_UNSIGNED_SHORT)
      ((unsigned short *)buffer)[i] = (unsigned short)(int)v;
    else if (type == MPI_INT)
      ((int *)buffer)[i] = (int)v;
    else if (type == MPI_UNSIGNED)
      ((unsigned *)buffer)[i] = (unsigned)(int)v;
    else if (type == MPI_FLOAT)
      ((float *)buffer)[i] = (float)v;
    else if (type == MPI_LONG)
      ((long *)buffer)[i] = (long)v;
    else if (type == MPI_LONG_LONG_INT)
      ((long long *)buffer)[i] = (long long)v;
    else if (type == MPI_UNSIGNED_LONG_LONG)
      ((unsigned long long *)buffer)[i] = (unsigned long long)(long long)v;
    else
      ((double *)buffer)[i] = v;
  }
}

static int leaves_padding(nc_type type, int ndims, const int *dims) {
  MPI_Offset bytes = type == NC_BYTE || type == NC_CHAR || type == NC_UBYTE ? 1
                     : type == NC_SHORT || type == NC_USHORT                ? 2
                                                                            : 4;
  for (int i = 0; i < ndims; i++)
    if (dims[i] < file.ndims && dims[i] != file.unlimited) bytes *= file.dim_length[dims[i]];
  return bytes % 4 != 0;
}

static void define_something(void) {
  char name[32];
  switch (common(8)) {
    case 0:
    case 1:
      if (file.ndims < kMaxDims) {
        MPI_Offset length = 1 + common(9);
        if (file.unlimited < 0 && common(2)) length = NC_UNLIMITED;
        snprintf(name, sizeof name, "dim%d", common(10) ? file.ndims : 0);
        int dimid = -7, err = ncmpi_def_dim(file.id, name, length, &dimid);
        say("def_dim %s %lld: %d id %d\n", name, (long long)length, err, dimid);
        if (err == NC_NOERR) {
          if (length == NC_UNLIMITED) file.unlimited = file.ndims;
          file.dim_length[file.ndims] = length;
          file.dimids[file.ndims++] = dimid;
        }
      }
      break;
    case 2:
    case 3:
    case 4:
      if (file.nvars < kMaxVars && file.ndims > 0) {
        int ndims = common(kMaxRank), dims[kMaxRank], v = file.nvars;
        for (int i = 0; i < ndims; i++) {
          do dims[i] = common(file.ndims);
          while (i > 0 && dims[i] == file.unlimited && common(10));
          if (common(40) == 0) dims[i] = 77;
        }
        if (ndims > 0 && file.unlimited >= 0 && common(3) == 0) dims[0] = file.unlimited;
        MPI_Offset elements = 1;
        for (int i = 0; i < ndims; i++) elements *= dims[i] < file.ndims ? 1 + file.dim_length[dims[i]] : 1;
        if (elements > kMaxElements / 16) break;
        nc_type type = kTypes[common(file.format == NC_FORMAT_CDF5 || common(20) == 0 ? 11 : 6)];
        if (nprocs > 1 && leaves_padding(type, ndims, dims)) type = NC_FLOAT;
        snprintf(name, sizeof name, common(12) ? "var%d" : common(2) ? "var0" : "bad/name%d", v);
        int varid = -7, err = ncmpi_def_var(file.id, name, type, ndims, dims, &varid);
        say("def_var %s type %d ndims %d: %d id %d\n", name, type, ndims, err, varid);
        if (err == NC_NOERR) {
          file.vars[v].type = type;
          file.vars[v].ndims = ndims;
          memcpy(file.vars[v].dims, dims, sizeof dims);
          file.varids[file.nvars++] = varid;
        }
      }
      break;
    case 5:
    case 6: {
      double values[5];
      int n = common(6), varid = common(file.nvars + 2) - 1;
      make_values(MPI_DOUBLE, values, 0, 0);
      for (int i = 0; i < n; i++) values[i] = common(50) * (common(20) ? 1.5 : 1e30);
      snprintf(name, sizeof name, "att%d", common(4));
      nc_type type = kTypes[common(file.format == NC_FORMAT_CDF5 || common(20) == 0 ? 11 : 6)];
      int err = common(2) ? ncmpi_put_att_double(file.id, varid, name, type, n, values)
                          : ncmpi_put_att_text(file.id, varid, name, n, "abcdefgh");
      say("put_att %d %s type %d n %d: %d\n", varid, name, type, n, err);
      break;
    }
    default: {
      snprintf(name, sizeof name, "att%d", common(4));
      int varid = common(file.nvars + 1) - 1;
      switch (common(4)) {
        case 0: say("del_att %d %s: %d\n", varid, name, ncmpi_del_att(file.id, varid, name)); break;
        case 1: say("rename_att %d %s: %d\n", varid, name, ncmpi_rename_att(file.id, varid, name, "att9")); break;
        case 2:
          if (file.nvars) {
            int v = common(file.nvars);
            snprintf(name, sizeof name, "renamed%d", v);
            say("rename_var %d: %d\n", v, ncmpi_rename_var(file.id, v, name));
          }
          break;
        default:
          if (file.nvars && file.fill) {
            int v = common(file.nvars), no_fill = common(2);
            say("def_var_fill %d %d: %d\n", v, no_fill, ncmpi_def_var_fill(file.id, v, no_fill, NULL));
          }
      }
    }
  }
}

static int is_record(int v) { return file.vars[v].ndims > 0 && file.vars[v].dims[0] == file.unlimited; }

static void inquire(void) {
  int ndims = -1, nvars = -1, natts = -1, unlimdim = -2, format = -1, err;
  err = ncmpi_inq(file.id, &ndims, &nvars, &natts, &unlimdim);
  ncmpi_inq_format(file.id, &format);
  say("inq: %d: %d %d %d %d format %d\n", err, ndims, nvars, natts, unlimdim, format);
  for (int d = 0; d < ndims; d++) {
    char name[NC_MAX_NAME + 1] = "";
    MPI_Offset length = -1;
    err = ncmpi_inq_dim(file.id, d, name, &length);
    say("dim %d: %d %s %lld\n", d, err, name, (long long)length);
  }
  for (int v = 0; v <= nvars; v++) {
    char name[NC_MAX_NAME + 1] = "";
    nc_type type = -1;
    int n = -1, dims[kMaxRank] = {0}, atts = -1, no_fill = -1;
    err = ncmpi_inq_var(file.id, v, name, &type, &n, dims, &atts);
    say("var %d: %d %s type %d ndims %d dims %d %d natts %d\n", v, err, name, type, n, dims[0], dims[1], atts);
    double fill = 0;
    err = ncmpi_inq_var_fill(file.id, v, &no_fill, &fill);
    say("var_fill: %d %d\n", err, no_fill);
    for (int a = 0; a < atts; a++) {
      nc_type att_type = -1;
      MPI_Offset length = -1;
      char value[256] = {0};
      ncmpi_inq_attname(file.id, v, a, name);
      err = ncmpi_inq_att(file.id, v, name, &att_type, &length);
      int err2 = ncmpi_get_att(file.id, v, name, value);
      say("att %s: %d %d type %d length %lld hash %016" PRIx64 "\n", name, err, err2, att_type, (long long)length,
          hash(value, sizeof value));
    }
  }
}

/* A part of variable `v` that belongs to this rank alone: slabs of the longest dimension. count may come out 0. */
static int own_part(int v, MPI_Offset records, MPI_Offset *start, MPI_Offset *count) {
  int ndims = file.vars[v].ndims, cut = -1;
  MPI_Offset longest = 0;
  for (int i = 0; i < ndims; i++) {
    start[i] = 0;
    count[i] = file.vars[v].dims[i] == file.unlimited ? records : file.dim_length[file.vars[v].dims[i]];
    if (count[i] > longest && !(i == 0 && is_record(v))) {
      longest = count[i];
      cut = i;
    }
  }
  if (cut < 0) {
    if (rank != 0)
      for (int i = 0; i < ndims; i++) count[i] = 0;
    return rank == 0;
  }
  MPI_Offset lo = longest * rank / nprocs, hi = longest * (rank + 1) / nprocs;
  start[cut] = lo;
  count[cut] = hi - lo;
  return hi > lo;
}

static MPI_Offset volume(int ndims, const MPI_Offset *count) {
  MPI_Offset n = 1;
  for (int i = 0; i < ndims; i++) n *= count[i];
  return n;
}

/* PnetCDF 1.12.3 strides over the neighbours in the file instead. */
static int strides_work(int v) { return !(is_record(v) && file.vars[v].ndims == 1); }

/* Shrinks a box to a random one inside it. */
static void shrink(int ndims, MPI_Offset *start, MPI_Offset *count) {
  for (int i = 0; i < ndims; i++)
    if (count[i] > 1) {
      MPI_Offset cut = local((int)count[i]);
      start[i] += cut;
      count[i] -= cut;
      if (count[i] > 1) count[i] = 1 + local((int)count[i]);
    }
}

static MPI_Datatype type_for(int v) { return file.vars[v].type == NC_CHAR ? MPI_CHAR : memory_type(common(22)); }

/* Writes all of a variable. */
static void write_all(int v) {
  MPI_Offset start[kMaxRank], count[kMaxRank];
  own_part(v, file.records, start, count);
  MPI_Offset n = volume(file.vars[v].ndims, count);
  if (file.vars[v].ndims == 0 && rank != 0) n = 1;
  if (n > kMaxElements) return;
  MPI_Datatype type = file.vars[v].type == NC_CHAR ? MPI_CHAR : MPI_DOUBLE;
  double *values = calloc(kMaxElements + 1, sizeof *values);
  if (file.vars[v].ndims == 0)
    ((char *)values)[0] = 'x';
  else
    make_values(type, values, n, 0);
  int err = ncmpi_put_vara_all(file.id, file.varids[v], start, count, values, n, type);
  say("write_all var %d records %d: %d\n", v, file.records, err);
  free(values);
}

static void grow(int records) {
  file.records += records;
  for (int v = 0; v < file.nvars; v++)
    if (is_record(v)) write_all(v);
}

static void put_something(int collective) {
  int v = common(file.nvars), form = common(6), extremes = common(4) == 0;
  if (file.vars[v].ndims == 0) return;
  MPI_Datatype type = type_for(v);
  MPI_Offset start[kMaxRank], count[kMaxRank], stride[kMaxRank], imap[kMaxRank];
  int mine = own_part(v, file.records, start, count);
  if (mine) shrink(file.vars[v].ndims, start, count);
  int ndims = file.vars[v].ndims;
  MPI_Offset n = volume(ndims, count);
  if (n > kMaxElements / 4) {
    n = 0;
    for (int i = 0; i < ndims; i++) count[i] = 0;
  }
  /* All ranks err together: native PnetCDF itself may hang when only some of them do. */
  int reachable = file.vars[v].dims[ndims - 1] == file.unlimited; /* beyond the end would be a longer file */
  if (common(12) == 0 && !reachable) start[ndims - 1] += 50;
  if (common(25) == 0) count[0] = -1;
  double *values = calloc(kMaxElements, sizeof *values);
  make_values(type, values, n > 0 ? 2 * n : 0, extremes);
  int err = 0, vid = common(30) ? file.varids[v] : 99;
  for (int i = 0; i < ndims; i++) stride[i] = 1;
  MPI_Offset step = 1;
  for (int i = ndims - 1; i >= 0; i--) {
    imap[i] = step;
    step *= count[i] > 0 ? count[i] : 1;
  }
  if (form == 1 && ndims > 0 && count[0] > 2 && strides_work(v)) {
    stride[0] = 2;
    count[0] = (count[0] + 1) / 2;
    n = volume(ndims, count);
  }
  if (form == 3 && is_record(v) && count[0] > 1) {
    count[0] = 1;
    n = volume(ndims, count);
  } /* more: PnetCDF 1.12.3 errs */
  if (form == 4) {
    MPI_Datatype spaced;
    MPI_Type_vector(n > 0 ? (int)n : 0, 1, 2, type, &spaced);
    MPI_Type_commit(&spaced);
    err = collective ? ncmpi_put_vara_all(file.id, vid, start, count, values, n > 0, spaced)
                     : ncmpi_put_vara(file.id, vid, start, count, values, n > 0, spaced);
    MPI_Type_free(&spaced);
  } else if (form == 1) {
    err = collective ? ncmpi_put_vars_all(file.id, vid, start, count, stride, values, n, type)
                     : ncmpi_put_vars(file.id, vid, start, count, stride, values, n, type);
  } else if (form == 2) {
    if (ndims == 2) {
      imap[0] = 1;
      imap[1] = count[0] > 0 ? count[0] : 1;
    }
    err = collective ? ncmpi_put_varm_all(file.id, vid, start, count, stride, imap, values, n, type)
                     : ncmpi_put_varm(file.id, vid, start, count, stride, imap, values, n, type);
  } else if (form == 3) {
    MPI_Offset *starts[2] = {start, start}, *counts[2] = {count, count};
    err = collective ? ncmpi_put_varn_all(file.id, vid, n > 0, starts, counts, values, n, type)
                     : ncmpi_put_varn(file.id, vid, n > 0, starts, counts, values, n, type);
  } else {
    err = collective ? ncmpi_put_vara_all(file.id, vid, start, count, values, n, type)
                     : ncmpi_put_vara(file.id, vid, start, count, values, n, type);
  }
  say("put form %d coll %d var %d n %lld: %d\n", form, collective, v, (long long)n, err);
  free(values);
}

static void get_something(int collective) {
  int v = common(file.nvars), form = common(4);
  MPI_Offset start[kMaxRank], count[kMaxRank], stride[kMaxRank];
  int ndims = file.vars[v].ndims;
  MPI_Datatype type = type_for(v);
  for (int i = 0; i < ndims; i++) {
    start[i] = 0;
    stride[i] = 1;
    count[i] = i == 0 && is_record(v) ? file.records : file.dim_length[file.vars[v].dims[i]];
  }
  shrink(ndims, start, count);
  if (common(12) == 0 && ndims > 0) start[0] += 60;
  MPI_Offset n = volume(ndims, count);
  if (n > kMaxElements) {
    n = 0;
    for (int i = 0; i < ndims; i++) count[i] = 0;
  }
  double *values = calloc(kMaxElements, sizeof *values);
  int err;
  if (form == 0 && ndims > 0 && count[0] > 2 && strides_work(v)) {
    stride[0] = 2;
    count[0] = (count[0] + 1) / 2;
    n = volume(ndims, count);
  }
  if (form == 0)
    err = collective ? ncmpi_get_vars_all(file.id, file.varids[v], start, count, stride, values, n, type)
                     : ncmpi_get_vars(file.id, file.varids[v], start, count, stride, values, n, type);
  else if (form == 1 && file.vars[v].type != NC_CHAR)
    err = collective ? ncmpi_get_vara_float_all(file.id, file.varids[v], start, count, (float *)values)
                     : ncmpi_get_vara_float(file.id, file.varids[v], start, count, (float *)values);
  else
    err = collective ? ncmpi_get_vara_all(file.id, file.varids[v], start, count, values, n, type)
                     : ncmpi_get_vara(file.id, file.varids[v], start, count, values, n, type);
  /* After an error that is not about ranges a buffer's content is nobody's promise. */
  say("get form %d coll %d var %d n %lld: %d hash %016" PRIx64 "\n", form, collective, v, (long long)n, err,
      err == NC_NOERR || err == NC_ERANGE ? hash(values, kMaxElements * sizeof *values) : 0);
  if (getenv("RANDOM_PROGRAM_VERBOSE")) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Type_get_name(type, name, &length);
    fprintf(stderr, "%d: type %s of nc_type %d:", rank, name, file.vars[v].type);
    for (int i = 0; i < 24; i++) fprintf(stderr, " %02x", ((unsigned char *)values)[i]);
    fprintf(stderr, "\n");
  }
  free(values);
}

static void nonblocking(void) {
  int n = 1 + common(5), requests[kMaxRequests], codes[kMaxRequests], count_requests = 0;
  double *buffers[kMaxRequests] = {0};
  int buffered = common(2), used[kMaxVars] = {0}; /* which of two overlapping requests wins is nobody's promise */
  if (buffered) say("attach: %d\n", ncmpi_buffer_attach(file.id, 64 * 1024));
  for (int i = 0; i < n; i++) {
    int v = common(file.nvars);
    if (file.vars[v].ndims == 0 || used[v]++) continue;
    MPI_Datatype type = type_for(v);
    MPI_Offset start[kMaxRank], count[kMaxRank];
    int mine = own_part(v, file.records, start, count);
    if (mine) shrink(file.vars[v].ndims, start, count);
    MPI_Offset elements = volume(file.vars[v].ndims, count);
    if (elements > 512) continue;
    double *values = buffers[count_requests] = calloc(1024, sizeof *values);
    make_values(type, values, elements, 0);
    int request = -5;
    int err = buffered ? ncmpi_bput_vara(file.id, file.varids[v], start, count, values, elements, type, &request)
                       : ncmpi_iput_vara(file.id, file.varids[v], start, count, values, elements, type, &request);
    say("%s var %d: %d null %d\n", buffered ? "bput" : "iput", v, err, request == NC_REQ_NULL);
    requests[count_requests++] = request;
  }
  int pending = -1;
  int err = ncmpi_inq_nreqs(file.id, &pending);
  say("nreqs: %d %d\n", err, pending);
  int cancel = common(6) == 0;
  if (cancel && count_requests > 0) say("cancel: %d\n", ncmpi_cancel(file.id, 1, requests, codes));
  if (common(3) == 0) {
    say("wait_all ALL: %d\n", ncmpi_wait_all(file.id, NC_REQ_ALL, NULL, NULL));
  } else {
    for (int i = 0; i < kMaxRequests; i++) codes[i] = 12345;
    err = ncmpi_wait_all(file.id, count_requests, requests, codes);
    say("wait_all %d: %d", count_requests, err);
    for (int i = 0; i < count_requests; i++) say(" %d/%d", codes[i], requests[i] == NC_REQ_NULL);
    say("\n");
  }
  for (int i = 0; i < count_requests; i++) free(buffers[i]);
  if (buffered) say("detach: %d\n", ncmpi_buffer_detach(file.id));
}

static void step(const char *path) {
  int err;
  switch (common(14)) {
    case 0:
    case 1:
    case 2: put_something(1); break;
    case 3:
    case 4: get_something(1); break;
    case 5:
      err = ncmpi_begin_indep_data(file.id);
      say("begin_indep: %d\n", err);
      put_something(0);
      if (common(8) == 0) put_something(1);
      say("end_indep: %d\n", ncmpi_end_indep_data(file.id));
      MPI_Barrier(MPI_COMM_WORLD);
      say("begin_indep: %d\n", ncmpi_begin_indep_data(file.id));
      get_something(0);
      MPI_Barrier(MPI_COMM_WORLD);
      say("end_indep: %d\n", ncmpi_end_indep_data(file.id));
      break;
    case 6:
    case 7: nonblocking(); break;
    case 8:
      if (file.records < 12) grow(1 + common(2));
      break;
    case 9: inquire(); break;
    case 10:
      say("redef: %d\n", ncmpi_redef(file.id));
      {
        int before = file.nvars;
        for (int i = common(4); i > 0; i--) define_something();
        if (common(6) == 0) put_something(1);
        say("enddef: %d\n", ncmpi_enddef(file.id));
        for (int v = before; v < file.nvars; v++) write_all(v);
      }
      break;
    case 11:
      say("sync: %d\n", ncmpi_sync(file.id));
      if (common(3) == 0) say("enddef: %d\n", ncmpi_enddef(file.id));
      break;
    case 12:
      if (common(3) == 0) {
        say("close: %d\n", ncmpi_close(file.id));
        err = ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file.id);
        say("open: %d\n", err);
        inquire();
      } else {
        define_something(); /* in data mode: most of it is refused, attributes that fit are not */
      }
      break;
    default: {
      int v = common(file.nvars);
      if (is_record(v) && file.fill) {
        err = ncmpi_fill_var_rec(file.id, file.varids[v], common(file.records));
        say("fill_var_rec %d: %d\n", v, err);
      }
      MPI_Offset records = -1;
      if (file.unlimited >= 0) ncmpi_inq_dimlen(file.id, file.dimids[file.unlimited], &records);
      say("records %lld\n", (long long)records);
    }
  }
}

static void print_in_rank_order(void) {
  for (int r = 0; r < nprocs; r++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (r == 0 && rank == 0) {
      printf("rank 0\n%s", transcript ? transcript : "");
      continue;
    }
    if (rank == r) {
      int size = (int)transcript_used;
      MPI_Send(&size, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      MPI_Send(transcript, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    } else if (rank == 0) {
      int size;
      MPI_Recv(&size, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      char *text = calloc((size_t)size + 1, 1);
      MPI_Recv(text, size, MPI_CHAR, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("rank %d\n%s", r, text);
      free(text);
    }
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nprocs);
  if (argc < 3) {
    if (rank == 0) fprintf(stderr, "usage: random_program SEED FILE [OPERATIONS]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  common_state = strtoull(argv[1], NULL, 0);
  local_state = common_state * 1000003u + (uint64_t)rank + 17;
  int operations = argc > 3 ? atoi(argv[3]) : 40;
  static const int kModes[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
  static const int kFormats[] = {NC_FORMAT_CLASSIC, NC_FORMAT_CDF2, NC_FORMAT_CDF5};
  int f = common(3);
  file.format = kFormats[f];
  file.unlimited = -1;
  int err = ncmpi_create(MPI_COMM_WORLD, argv[2], NC_CLOBBER | kModes[f], MPI_INFO_NULL, &file.id);
  say("create format %d: %d\n", file.format, err);
  if (err == NC_NOERR) {
    file.fill = common(3) == 0;
    int old = -1;
    if (file.fill) {
      err = ncmpi_set_fill(file.id, NC_FILL, &old);
      say("set_fill: %d %d\n", err, old);
    }
    for (int i = 0; i < 14 || file.nvars == 0; i++) define_something();
    say("enddef: %d\n", ncmpi_enddef(file.id));
    file.records = 1 + common(3);
    for (int v = 0; v < file.nvars; v++) write_all(v);
    for (int i = 0; i < operations; i++) step(argv[2]);
    inquire();
    say("close: %d\n", ncmpi_close(file.id));
  }
  print_in_rank_order();
  MPI_Finalize();
  return 0;
}
