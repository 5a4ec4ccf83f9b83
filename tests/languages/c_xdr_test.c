/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses an interface as programs use what rpcgen makes of it: through the fields of its structs, its xdr_ functions, and
 * xdr_free(). */
#include <parcel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static parcel_args make_args(parcel_data *contents, int64_t *offsets, parcel_stop *stops) {
  parcel_args args;
  memset(&args, 0, sizeof args);
  args.op = PARCEL_PULL;
  args.offsets.offsets_len = 2;
  args.offsets.offsets_val = offsets;
  args.contents.parcel_array_len = 2;
  args.contents.parcel_array_val = contents;
  args.route = stops;
  return args;
}

static int is_same(const parcel_args *a, const parcel_args *b) {
  return a->op == b->op && a->offsets.offsets_len == b->offsets.offsets_len &&
         memcmp(a->offsets.offsets_val, b->offsets.offsets_val, 2 * sizeof(int64_t)) == 0 &&
         a->contents.parcel_array_len == b->contents.parcel_array_len &&
         memcmp(a->contents.parcel_array_val, b->contents.parcel_array_val, 2 * sizeof(parcel_data)) == 0 &&
         strcmp(a->route->place, b->route->place) == 0 && strcmp(a->route->next->place, b->route->next->place) == 0 &&
         b->route->next->next == NULL;
}

int main(void) {
  parcel_data contents[2] = {{1, 1.5F, 2.5}, {2, -1.5F, -2.5}};
  int64_t offsets[2] = {-1, 1};
  char here[] = "here", there[] = "there";
  parcel_stop last = {there, NULL}, first = {here, &last};
  parcel_args args = make_args(contents, offsets, &first), copy;
  char bytes[1024];
  XDR stream;
  memset(&copy, 0, sizeof copy);
  xdrmem_create(&stream, bytes, sizeof bytes, XDR_ENCODE);
  if (!xdr_parcel_args(&stream, &args)) return 1;
  const u_int size = xdr_getpos(&stream);
  xdrmem_create(&stream, bytes, size, XDR_DECODE);
  const int done = xdr_parcel_args(&stream, &copy) && is_same(&args, &copy);
  xdr_free((xdrproc_t)xdr_parcel_args, (char *)&copy);
  printf("%u bytes, version %d, %s\n", size, PARCEL_VERSION, done ? "the same" : "others");
  return done && copy.route == NULL ? 0 : 1;
}
