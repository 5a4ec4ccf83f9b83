/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, modes, definitions, attributes, inquiries. */
#include "matrix.h"

#include <string.h>
#include <unistd.h>

/* Native PnetCDF does not know the numbers of record and fixed-size variables of files that it opened. */
static void show_header(int id, int created) {
  int ndims = -1, nvars = -1, natts = -1, unlimited = -2, format = -1, version = -1, count = -1;
  MPI_Offset number = -1;
  CALL(ncmpi_inq(id, &ndims, &nvars, &natts, &unlimited));
  show_number("ndims", ndims), show_number("nvars", nvars), show_number("natts", natts),
      show_number("unlimited", unlimited);
  CALL(ncmpi_inq_format(id, &format)), show_number("format", format);
  CALL(ncmpi_inq_version(id, &version)), show_number("version", version);
  if (created) {
    CALL(ncmpi_inq_num_rec_vars(id, &count)), show_number("record variables", count);
    CALL(ncmpi_inq_num_fix_vars(id, &count)), show_number("fixed variables", count);
  }
  CALL(ncmpi_inq_header_size(id, &number)), show_number("header size", number);
  CALL(ncmpi_inq_header_extent(id, &number)), show_number("header extent", number);
  CALL(ncmpi_inq_recsize(id, &number)), show_number("record size", number);
  CALL(ncmpi_inq_nreqs(id, &count)), show_number("requests", count);
  for (int i = 0; i < ndims; ++i) {
    char name[NC_MAX_NAME + 1] = "";
    CALL(ncmpi_inq_dim(id, i, name, &number));
    fprintf(out, "  dimension %s %lld\n", name, (long long)number);
  }
  for (int i = 0; i < nvars; ++i) {
    char name[NC_MAX_NAME + 1] = "";
    nc_type type = 0;
    int dims[16], rank_of = 0, atts = 0, no_fill = -1;
    double fill = 0;
    CALL(ncmpi_inq_var(id, i, name, &type, &rank_of, dims, &atts));
    fprintf(out, "  variable %s type %d dims %d atts %d\n", name, type, rank_of, atts);
    CALL(ncmpi_inq_varoffset(id, i, &number)), show_number("offset", number);
    memset(&fill, 0, sizeof fill);
    CALL(ncmpi_inq_var_fill(id, i, &no_fill, &fill)), show_number("no_fill", no_fill);
    for (int j = 0; j < atts; ++j) {
      char att[NC_MAX_NAME + 1] = "";
      CALL(ncmpi_inq_attname(id, i, j, att));
      fprintf(out, "  attribute %s\n", att);
    }
  }
}

void open_and_close(int format) {
  int id = 77, id2 = 77, count = -1, ids[8], length = -1;
  char path[4096] = "", name[4096];
  CALL(ncmpi_create(MPI_COMM_WORLD, "", format, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_create(MPI_COMM_WORLD, NULL, format, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_open(MPI_COMM_WORLD, "", NC_NOWRITE, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path("absent"), NC_NOWRITE, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path("x"), format | NC_NETCDF4, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path("x"), NC_64BIT_DATA | NC_64BIT_OFFSET, MPI_INFO_NULL, &id));
  show_number("id", id);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path("x"), format | NC_DISKLESS, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path("no/such/directory"), format, MPI_INFO_NULL, &id)), show_number("id", id);
  snprintf(name, sizeof name, "open%d", format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_inq_path(id, &length, path)), show_number("path length", length - (int)strlen(file_path(name)));
  CALL(ncmpi_inq_files_opened(&count, ids)), show_number("open files", count), show_ints("ids", ids, count);
  show_header(id, 1);
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_enddef(id));
  show_header(id, 1);
  CALL(ncmpi_close(id));
  CALL(ncmpi_close(id));
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format | NC_NOCLOBBER, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_NOWRITE, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_NOWRITE, MPI_INFO_NULL, &id2)), show_number("id", id2);
  CALL(ncmpi_redef(id));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "a", 1, "b"));
  CALL(ncmpi_sync(id));
  CALL(ncmpi_sync_numrecs(id));
  CALL(ncmpi_flush(id));
  CALL(ncmpi_set_fill(id, NC_FILL, NULL));
  show_header(id2, 0);
  CALL(ncmpi_close(id));
  CALL(ncmpi_close(id2));
  if (size > 1) {
    int mode = rank == 1 ? (format ^ NC_64BIT_OFFSET) & ~NC_64BIT_DATA : format;
    snprintf(name, sizeof name, "differ%d", format);
    CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), mode, MPI_INFO_NULL, &id)), show_number("id", id);
    CALL(ncmpi_inq_format(id, &count)), show_number("format", count);
    CALL(ncmpi_close(id));
    CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), rank == 1 ? NC_WRITE : NC_NOWRITE, MPI_INFO_NULL, &id));
    CALL(ncmpi_close(id));
  }
  snprintf(name, sizeof name, "aborted%d", format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  /* Natively every rank deletes the file, and all but the first find it gone. */
  if (size == 1)
    CALL(ncmpi_abort(id));
  else
    ncmpi_abort(id);
  MPI_Barrier(MPI_COMM_WORLD);
  show_number("exists", access(file_path(name), F_OK) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    FILE *junk = fopen(file_path("junk"), "w");
    fputs("this is not a netCDF file at all", junk);
    fclose(junk);
    junk = fopen(file_path("short"), "w");
    fputs("CDF", junk);
    fclose(junk);
    junk = fopen(file_path("cut"), "w");
    fwrite("CDF\001\0\0\0\0\0\0\0\012\0\0\0\377", 1, 16, junk);
    fclose(junk);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path("junk"), NC_NOWRITE, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path("short"), NC_WRITE, MPI_INFO_NULL, &id)), show_number("id", id);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path("cut"), NC_WRITE, MPI_INFO_NULL, &id)), show_number("id", id);
  if (rank == 0) CALL(ncmpi_delete(file_path("short"), MPI_INFO_NULL));
  if (rank == 0) CALL(ncmpi_delete(file_path("absent"), MPI_INFO_NULL));
}

/* More definitions than are kept until define mode ends; later ones change earlier ones. */
static void define_many(int format) {
  int id = -1, x = -1, v = -1;
  char name[64];
  snprintf(name, sizeof name, "many%d", format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  CALL(ncmpi_def_dim(id, "x", 6, &x));
  for (int i = 0; i < 400; ++i) {
    snprintf(name, sizeof name, "variable %d", i);
    CALL(ncmpi_def_var(id, name, NC_INT, 1, &x, &v));
    CALL(ncmpi_put_att_int(id, v, "number", NC_SHORT, 1, &i));
    if (i % 3 == 0) CALL(ncmpi_rename_att(id, v / 2, "number", "half the number"));
    if (i % 7 == 0) CALL(ncmpi_del_att(id, v / 3, "number"));
    if (i % 50 == 0) CALL(ncmpi_rename_var(id, v / 5, name + 3));
  }
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_put_var1_int_all(id, v, (MPI_Offset[]){rank}, &v));
  show_header(id, 1);
  CALL(ncmpi_close(id));
}

void define(int format) {
  define_many(format);
  int id = -1, x = -1, y = -1, t = -1, d = -1, v = -1, f = -1, r = -1, c = -1, dims[4], type_ = -1, old = -1,
      number = -1;
  MPI_Offset length = -1;
  char name[64], text[256] = "";
  snprintf(name, sizeof name, "define%d", format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  CALL(ncmpi_def_dim(id, "x", 6, &x)), show_number("x", x);
  CALL(ncmpi_def_dim(id, "x", 6, &d)), show_number("d", d);
  CALL(ncmpi_def_dim(id, "", 6, &d));
  CALL(ncmpi_def_dim(id, "bad/name", 6, &d));
  CALL(ncmpi_def_dim(id, "negative", -6, &d));
  CALL(ncmpi_def_dim(id, "y", 4, &y)), show_number("y", y);
  CALL(ncmpi_def_dim(id, "t", NC_UNLIMITED, &t)), show_number("t", t);
  CALL(ncmpi_def_dim(id, "u", NC_UNLIMITED, &d));
  dims[0] = x, dims[1] = y;
  CALL(ncmpi_def_var(id, "v", NC_DOUBLE, 2, dims, &v)), show_number("v", v);
  CALL(ncmpi_def_var(id, "v", NC_DOUBLE, 2, dims, &d));
  CALL(ncmpi_def_var(id, "w", 99, 2, dims, &d));
  CALL(ncmpi_def_var(id, "w", NC_INT, -1, dims, &d));
  CALL(ncmpi_def_var(id, "w64", NC_INT64, 2, dims, &d));
  dims[0] = 55;
  CALL(ncmpi_def_var(id, "w", NC_INT, 1, dims, &d));
  CALL(ncmpi_def_var(id, "f", NC_FLOAT, 0, NULL, &f)), show_number("f", f);
  dims[0] = t, dims[1] = x;
  CALL(ncmpi_def_var(id, "r", NC_SHORT, 2, dims, &r)), show_number("r", r);
  CALL(ncmpi_def_var(id, "c", NC_CHAR, 1, &x, &c));
  static const double three[] = {1, 2.5, 3e9};
  static const int ints[] = {1, -2, 70000};
  CALL(ncmpi_put_att_double(id, v, "doubles", NC_DOUBLE, 3, three));
  CALL(ncmpi_put_att_double(id, v, "as ints", NC_INT, 2, three));
  CALL(ncmpi_put_att_double(id, v, "out of range", NC_INT, 3, three));
  CALL(ncmpi_put_att_int(id, v, "shorts", NC_SHORT, 3, ints));
  CALL(ncmpi_put_att_int(id, v, "unsigned", NC_UINT, 3, ints));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "title", 5, "hello"));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "empty", 0, NULL));
  CALL(ncmpi_put_att_text(id, 99, "title", 5, "hello"));
  CALL(ncmpi_put_att_int(id, NC_GLOBAL, "chars", NC_CHAR, 1, ints));
  CALL(ncmpi_put_att(id, v, "_FillValue", NC_DOUBLE, 1, three));
  CALL(ncmpi_put_att(id, v, "_FillValue", NC_INT, 1, ints));
  CALL(ncmpi_get_att_text(id, NC_GLOBAL, "title", text)), fprintf(out, "  %s\n", text);
  CALL(ncmpi_get_att_text(id, NC_GLOBAL, "none", text));
  CALL(ncmpi_inq_att(id, v, "doubles", &type_, &length)), show_number("type", type_), show_number("length", length);
  CALL(ncmpi_copy_att(id, v, "doubles", id, r));
  CALL(ncmpi_copy_att(id, v, "none", id, r));
  CALL(ncmpi_rename_att(id, v, "doubles", "twofold"));
  CALL(ncmpi_rename_att(id, v, "none", "other"));
  CALL(ncmpi_del_att(id, v, "shorts"));
  CALL(ncmpi_del_att(id, v, "shorts"));
  CALL(ncmpi_rename_dim(id, y, "why"));
  CALL(ncmpi_rename_dim(id, y, "x"));
  CALL(ncmpi_rename_var(id, f, "eff"));
  CALL(ncmpi_rename_var(id, f, "v"));
  CALL(ncmpi_set_fill(id, NC_FILL, &old)), show_number("old", old);
  CALL(ncmpi_set_fill(id, 1234, &old));
  CALL(ncmpi_def_var_fill(id, r, 1, NULL));
  CALL(ncmpi_def_var_fill(id, 99, 1, NULL));
  static const short minus = -9;
  CALL(ncmpi_def_var_fill(id, r, 0, &minus));
  CALL(ncmpi_begin_indep_data(id));
  show_header(id, 1);
  CALL(ncmpi__enddef(id, -1, 0, 0, 0));
  CALL(ncmpi__enddef(id, 100, 512, 50, 64));
  show_header(id, 1);
  CALL(ncmpi_def_dim(id, "late", 6, &d));
  CALL(ncmpi_def_var(id, "late", NC_INT, 0, NULL, &d));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "title", 5, "HELLO"));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "title", 50, "12345678901234567890123456789012345678901234567890"));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "another", 1, "x"));
  CALL(ncmpi_del_att(id, NC_GLOBAL, "title"));
  CALL(ncmpi_rename_dim(id, x, "X"));
  CALL(ncmpi_rename_dim(id, x, "much longer"));
  CALL(ncmpi_rename_var(id, v, "V"));
  CALL(ncmpi_rename_att(id, v, "twofold", "2fold"));
  CALL(ncmpi_set_fill(id, NC_NOFILL, &old));
  CALL(ncmpi_fill_var_rec(id, r, 2));
  CALL(ncmpi_fill_var_rec(id, v, 2));
  CALL(ncmpi_inq_dimlen(id, t, &length)), show_number("records", length);
  CALL(ncmpi_inq_dimid(id, "X", &d)), show_number("dimid", d);
  CALL(ncmpi_inq_varid(id, "nothing", &d));
  CALL(ncmpi_redef(id));
  CALL(ncmpi_redef(id));
  CALL(ncmpi_def_var(id, "added", NC_INT, 1, &x, &d)), show_number("added", d);
  dims[0] = t;
  CALL(ncmpi_def_var(id, "added record", NC_BYTE, 2, dims, &d));
  CALL(ncmpi_set_fill(id, NC_NOFILL, &old)), show_number("old", old);
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "more", 20, "twenty letters here!"));
  CALL(ncmpi_def_var_fill(id, number + 2, 0, NULL));
  show_header(id, 1);
  CALL(ncmpi_enddef(id));
  show_header(id, 1);
  CALL(ncmpi_close(id));
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_WRITE, MPI_INFO_NULL, &id));
  show_header(id, 0);
  CALL(ncmpi_redef(id));
  CALL(ncmpi_def_dim(id, "dropped", 9, &d));
  CALL(ncmpi_abort(id));
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_WRITE, MPI_INFO_NULL, &id));
  CALL(ncmpi_redef(id));
  CALL(ncmpi_def_dim(id, "kept", 9, &d));
  CALL(ncmpi_close(id));
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_NOWRITE, MPI_INFO_NULL, &id));
  show_header(id, 0);
  CALL(ncmpi_close(id));
}
