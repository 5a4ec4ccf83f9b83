/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_H
#define MATRIX_H

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

extern int rank, size;
extern FILE *out;

const char *file_path(const char *name);
void show(const char *what, int code);
void show_number(const char *what, long long value);
void show_doubles(const char *what, const double *values, int count);
void show_ints(const char *what, const int *values, int count);

/* Makes a call and prints it with its result. */
#define CALL(expression) show(#expression, expression)

void open_and_close(int format);
void define(int format);
void data(int format);
void bounds(int format);
void types(int format);
void nonblocking(int format);
void records(int format);
void again(int format);
void flexible(int format);
void independent(int format);
void multi(int format);
void hints(int format);
void overlaps(int format);
void filetypes(int format);
void many_dimensions(int format);

#endif
