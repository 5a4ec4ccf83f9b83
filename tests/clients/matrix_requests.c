/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking, buffered, multiple and flexible puts and gets. */
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

static int make(const char *kind, int format, int *x, int *v, int *r) {
  int id = -1, dims[2], t;
  char name[64];
  snprintf(name, sizeof name, "%s%d", kind, format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  ncmpi_def_dim(id, "t", NC_UNLIMITED, &t);
  ncmpi_def_dim(id, "y", 6, &dims[0]);
  ncmpi_def_dim(id, "x", 10 * size, &dims[1]);
  ncmpi_def_var(id, "x", NC_INT, 1, &dims[1], x);
  ncmpi_def_var(id, "v", NC_FLOAT, 2, dims, v);
  dims[0] = t;
  ncmpi_def_var(id, "r", NC_DOUBLE, 2, dims, r);
  CALL(ncmpi_set_fill(id, NC_FILL, NULL));
  return id;
}

static void show_usage(int id) {
  MPI_Offset usage = -1, length = -1;
  int count = -1;
  CALL(ncmpi_inq_nreqs(id, &count)), show_number("requests", count);
  CALL(ncmpi_inq_buffer_usage(id, &usage)), show_number("usage", usage);
  CALL(ncmpi_inq_buffer_size(id, &usage)), show_number("size", usage);
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
}

void nonblocking(int format) {
  int x, v, r, id = make("nonblocking", format, &x, &v, &r), reqs[8], statuses[8], ints[1024];
  double doubles[1024];
  MPI_Offset start[2] = {0, 10 * rank}, count[2] = {6, 10};
  for (int i = 0; i < 1024; ++i) ints[i] = 100 * rank + i, doubles[i] = i + 0.5 + rank;
  memset(reqs, -1, sizeof reqs);
  CALL(ncmpi_iput_vara_int(id, v, start, count, ints, &reqs[0])), show_ints("reqs", reqs, 4);
  CALL(ncmpi_wait_all(id, 1, reqs, statuses));
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_wait(id, 1, reqs, statuses));
  CALL(ncmpi_iput_vara_int(id, x, start + 1, count + 1, ints, &reqs[1]));
  CALL(ncmpi_iget_vara_int(id, x, start + 1, count + 1, ints + 100, &reqs[2]));
  count[0] = 2;
  CALL(ncmpi_iput_vara_double(id, r, start, count, doubles, &reqs[3]));
  show_ints("reqs", reqs, 4);
  show_usage(id);
  int bad[3] = {reqs[1], 444, 555};
  CALL(ncmpi_wait_all(id, 2, bad, statuses)), show_ints("bad", bad, 3), show_ints("statuses", statuses, 2);
  memset(statuses, 0x11, sizeof statuses);
  CALL(ncmpi_wait_all(id, 4, reqs, statuses)), show_ints("reqs", reqs, 4), show_ints("statuses", statuses, 4);
  CALL(ncmpi_wait_all(id, NC_REQ_ALL, NULL, NULL));
  show_usage(id);
  CALL(ncmpi_get_vara_int_all(id, v, start, (MPI_Offset[]){1, 10}, ints + 300)), show_ints("v", ints + 300, 10);
  /* bad arguments */
  CALL(ncmpi_iput_vara_int(id, 99, start, count, ints, &reqs[0])), show_ints("reqs", reqs, 1);
  CALL(ncmpi_iput_vara_int(id, x, (MPI_Offset[]){10 * size}, count, ints, &reqs[0])), show_ints("reqs", reqs, 1);
  CALL(ncmpi_iput_vara_text(id, x, start, count, "x", &reqs[0]));
  CALL(ncmpi_bput_vara_int(id, x, start + 1, count + 1, ints, &reqs[0]));
  CALL(ncmpi_iput_vara_int(id, x, start, (MPI_Offset[]){0}, ints, &reqs[0])), show_ints("reqs", reqs, 1);
  CALL(ncmpi_cancel(id, -9, NULL, NULL));
  CALL(ncmpi_cancel(id, 0, NULL, NULL));
  /* buffered */
  CALL(ncmpi_buffer_detach(id));
  CALL(ncmpi_buffer_attach(id, 0));
  CALL(ncmpi_buffer_attach(id, 150));
  CALL(ncmpi_buffer_attach(id, 100));
  CALL(ncmpi_bput_vara_int(id, x, start + 1, (MPI_Offset[]){10}, ints + 5, &reqs[0]));
  show_usage(id);
  CALL(ncmpi_bput_vara_int(id, r, start, (MPI_Offset[]){1, 10}, ints + 7, &reqs[1])), show_ints("reqs", reqs, 2);
  CALL(ncmpi_bput_vara_int(id, r, start, (MPI_Offset[]){2, 10}, ints + 7, &reqs[2])), show_ints("reqs", reqs, 3);
  show_usage(id);
  ints[5] = -1;
  CALL(ncmpi_buffer_detach(id));
  CALL(ncmpi_cancel(id, 1, reqs, statuses)), show_ints("reqs", reqs, 2);
  show_usage(id);
  CALL(ncmpi_bput_vara_int(id, x, start + 1, (MPI_Offset[]){10}, ints + 9, &reqs[0])), show_ints("reqs", reqs, 2);
  CALL(ncmpi_wait_all(id, NC_PUT_REQ_ALL, NULL, NULL));
  show_usage(id);
  CALL(ncmpi_buffer_detach(id));
  CALL(ncmpi_get_vara_int_all(id, x, start + 1, (MPI_Offset[]){10}, ints + 300)), show_ints("x", ints + 300, 10);
  /* out of range, at the call */
  doubles[1] = 1e200;
  CALL(ncmpi_iput_vara_double(id, x, start + 1, (MPI_Offset[]){10}, doubles, &reqs[0])), show_ints("reqs", reqs, 1);
  CALL(ncmpi_wait_all(id, 1, reqs, statuses)), show_ints("statuses", statuses, 1);
  CALL(ncmpi_put_vara_double_all(id, r, start, (MPI_Offset[]){1, 10}, doubles));
  CALL(ncmpi_iget_vara_int(id, r, start, (MPI_Offset[]){1, 10}, ints, &reqs[0]));
  CALL(ncmpi_iget_vara_int(id, x, start + 1, (MPI_Offset[]){10}, ints + 20, &reqs[1]));
  CALL(ncmpi_wait_all(id, 2, reqs, statuses)), show_ints("statuses", statuses, 2);
  show_ints("gotten", ints, 30);
  /* lists */
  MPI_Offset a[2] = {0, 10 * rank}, b[2] = {3, 10 * rank + 2}, c[2] = {5, 10 * rank}, na[2] = {1, 3}, nb[2] = {2, 2},
             nc[2] = {1, 0};
  MPI_Offset *starts[3] = {a, b, c}, *counts[3] = {na, nb, nc};
  CALL(ncmpi_iput_varn_int(id, v, 3, starts, counts, ints, &reqs[0]));
  /* One record each: natively, more than one in a list writes beyond the buffer. */
  counts[1] = (MPI_Offset[]){1, 2};
  CALL(ncmpi_iput_varn_double(id, r, 2, starts, counts, doubles, &reqs[1])), show_ints("reqs", reqs, 2);
  CALL(ncmpi_wait_all(id, 2, reqs, NULL));
  CALL(ncmpi_iget_varn_int(id, v, 2, starts, counts, ints + 50, &reqs[0]));
  CALL(ncmpi_sync(id)); /* what others write for this rank is not in the file before */
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_wait_all(id, 1, reqs, NULL));
  CALL(ncmpi_wait(id, 1, reqs, NULL)), show_ints("varn", ints + 50, 7);
  CALL(ncmpi_put_varn_int(id, v, 2, starts, NULL, ints));
  CALL(ncmpi_iput_vara_double(id, r, (MPI_Offset[]){5 + rank, 0}, (MPI_Offset[]){1, 10}, doubles, &reqs[0]));
  CALL(ncmpi_wait(id, NC_REQ_ALL, NULL, NULL));
  CALL(ncmpi_end_indep_data(id));
  show_usage(id);
  CALL(ncmpi_iput_vara_double(id, r, (MPI_Offset[]){5, 0}, (MPI_Offset[]){1, 10}, doubles, NULL));
  CALL(ncmpi_iget_vara_double(id, r, (MPI_Offset[]){5, 0}, (MPI_Offset[]){1, 10}, doubles, NULL));
  show_usage(id);
  CALL(ncmpi_close(id));
}

void multi(int format) {
  int x, v, r, id = make("multi", format, &x, &v, &r), a[64], b[64];
  int vars[2] = {x, v}, bad[2] = {x, 99};
  MPI_Offset sx[1] = {10 * rank}, cx[1] = {10}, sv[2] = {rank % 6, 10 * rank}, cv[2] = {1, 10}, kv[2] = {1, 2};
  MPI_Offset *starts[2] = {sx, sv}, *counts[2] = {cx, cv}, *strides[2] = {NULL, NULL};
  int *bufs[2] = {a, b};
  void *flexible[2] = {a, b};
  MPI_Offset bufcounts[2] = {10, 10};
  MPI_Datatype buftypes[2] = {MPI_INT, MPI_INT};
  for (int i = 0; i < 64; ++i) a[i] = i + rank, b[i] = 1000 * i + rank;
  CALL(ncmpi_mput_vara_int_all(id, 2, vars, starts, counts, bufs));
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_mput_vara_int_all(id, 2, vars, starts, counts, bufs));
  CALL(ncmpi_mput_vara_int_all(id, 2, bad, starts, counts, bufs));
  CALL(ncmpi_mput_vara_int_all(id, rank == 0 ? 0 : 2, vars, starts, counts, bufs));
  CALL(ncmpi_mget_vara_int_all(id, 2, vars, starts, counts, bufs)), show_ints("a", a, 10), show_ints("b", b, 10);
  CALL(ncmpi_mput_var1_int_all(id, 2, vars, starts, bufs));
  cv[1] = 5, strides[1] = kv, strides[0] = (MPI_Offset[]){1};
  CALL(ncmpi_mput_vars_int_all(id, 2, vars, starts, counts, strides, bufs));
  cv[1] = 10;
  CALL(ncmpi_mget_vara_all(id, 2, vars, starts, counts, flexible, bufcounts, buftypes)), show_ints("b", b, 10);
  CALL(ncmpi_mput_vara_int(id, 2, vars, starts, counts, bufs));
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_mput_vara_int(id, 2, vars, starts, counts, bufs));
  CALL(ncmpi_mget_vara_int(id, 2, vars, starts, counts, bufs)), show_ints("b", b, 10);
  CALL(ncmpi_close(id));
}

void flexible(int format) {
  int x, v, r, id = make("flexible", format, &x, &v, &r), ints[256];
  MPI_Datatype every_other, contiguous, duplicate, bytes, mixed, part, resized;
  MPI_Offset start[2] = {0, 10 * rank}, count[2] = {2, 10};
  for (int i = 0; i < 256; ++i) ints[i] = 500 * rank + i;
  MPI_Type_vector(20, 1, 2, MPI_INT, &every_other), MPI_Type_commit(&every_other);
  MPI_Type_contiguous(20, MPI_INT, &contiguous), MPI_Type_commit(&contiguous);
  MPI_Type_dup(contiguous, &duplicate);
  MPI_Type_contiguous(80, MPI_BYTE, &bytes), MPI_Type_commit(&bytes);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &mixed);
  MPI_Type_commit(&mixed);
  MPI_Type_create_subarray(2, (int[]){6, 14}, (int[]){2, 10}, (int[]){2, 2}, MPI_ORDER_C, MPI_INT, &part);
  MPI_Type_commit(&part);
  MPI_Type_create_resized(MPI_INT, 0, 12, &resized), MPI_Type_commit(&resized);
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 1, every_other));
  memset(ints, 0, sizeof ints);
  CALL(ncmpi_get_vara_all(id, v, start, count, ints, 1, every_other)), show_ints("every other", ints, 40);
  for (int i = 0; i < 256; ++i) ints[i] = 500 * rank + i;
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 1, contiguous));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 1, duplicate));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 20, resized));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 20, MPI_INTEGER));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 1, part));
  memset(ints, 0, sizeof ints);
  CALL(ncmpi_get_vara_all(id, v, start, count, ints, 1, part)), show_ints("part", ints, 84);
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 19, MPI_INT));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 0, MPI_INT));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, -5, MPI_INT));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 20, MPI_C_BOOL));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 20, MPI_DOUBLE_INT));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 10, mixed));
  CALL(ncmpi_put_vara_all(id, v, start, count, ints, 20, MPI_BYTE));
  float floats[20];
  for (int i = 0; i < 20; ++i) floats[i] = i * 1.5f;
  CALL(ncmpi_put_vara_all(id, v, start, count, floats, 12345, MPI_DATATYPE_NULL));
  CALL(ncmpi_get_vara_all(id, v, start, count, ints, 20, MPI_INT)), show_ints("as int", ints, 20);
  CALL(ncmpi_put_var1_all(id, x, start + 1, ints, 1, MPI_INT));
  MPI_Offset imap[2] = {1, 2}, one[2] = {1, 1};
  CALL(ncmpi_put_varm_all(id, v, start, count, one, imap, ints, 20, MPI_INT));
  CALL(ncmpi_put_varm_all(id, v, start, count, NULL, imap, ints, 1, every_other));
  CALL(ncmpi_get_varm_all(id, v, start, count, NULL, imap, ints, 1, every_other)), show_ints("mapped", ints, 40);
  int request = -7;
  CALL(ncmpi_iget_vara(id, v, start, count, ints, 1, every_other, &request)), show_number("request", request);
  MPI_Type_free(&every_other);
  CALL(ncmpi_wait_all(id, 1, &request, NULL)), show_ints("got", ints, 40);
  CALL(ncmpi_iput_vara(id, v, start, count, ints, 0, MPI_INT, &request)), show_number("request", request);
  CALL(ncmpi_iput_vara(id, v, start, count, ints, 3, MPI_INT, &request)), show_number("request", request);
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_put_vara(id, v, start, count, ints, 0, MPI_INT));
  if (rank == 0) CALL(ncmpi_put_var(id, x, ints, 10 * size, MPI_INT));
  CALL(ncmpi_close(id));
  MPI_Type_free(&contiguous), MPI_Type_free(&duplicate), MPI_Type_free(&bytes), MPI_Type_free(&mixed);
  MPI_Type_free(&part), MPI_Type_free(&resized);
}
