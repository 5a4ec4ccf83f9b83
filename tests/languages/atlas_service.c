/* SPDX-License-Identifier: BSD-3-Clause */
/* A service of atlas.x in C: functions of its operations in the struct that nessie idl declares. */
#include <stdlib.h>
#include <string.h>

#include "atlas_c.h"
#include "atlas_rpc.h"

static int nothing(void *context, nssi_rt_request *request) {
  (void)context, (void)request;
  return NESSIE_OK;
}

static int add(void *context, nssi_rt_request *request, int a, int b, int *sum) {
  (void)context, (void)request;
  *sum = a + b;
  return NESSIE_OK;
}

static int greet(void *context, nssi_rt_request *request, const char *name, char **greeting) {
  (void)context, (void)request;
  *greeting = malloc(strlen(name) + sizeof "hello ");
  if (*greeting == NULL) return NESSIE_NO_MEMORY;
  strcpy(*greeting, "hello ");
  strcat(*greeting, name);
  return NESSIE_OK;
}

/* Answers by itself. */
static int mirror(void *context, nssi_rt_request *request, const point *from, point *result) {
  const point mirrored = {-from->x, -from->y};
  (void)context, (void)result;
  return atlas_mirror_1_reply(request, &mirrored);
}

/* Of more than MOST steps the result breaks the interface. */
static int walk(void *context, nssi_rt_request *request, const point *from, u_int steps, path *way) {
  (void)context, (void)request;
  way->path_val = calloc(steps + 1, sizeof *way->path_val);
  if (way->path_val == NULL) return NESSIE_NO_MEMORY;
  way->path_len = steps;
  for (u_int i = 0; i < steps; ++i) way->path_val[i] = (point){from->x + (int)i, from->y};
  return NESSIE_OK;
}

static int length(void *context, nssi_rt_request *request, const path *way, int *points) {
  (void)context, (void)request;
  *points = (int)way->path_len;
  return NESSIE_OK;
}

static int find(void *context, nssi_rt_request *request, color wanted, found *result) {
  (void)context, (void)request;
  result->is_here = wanted == RED;
  result->found_u.where = (point){1, 2};
  return NESSIE_OK;
}

/* What is borrowed is answered before it goes. */
static int echo(void *context, nssi_rt_request *request, const parcel *bytes, parcel *result) {
  (void)context, (void)result;
  return atlas_echo_1_reply(request, bytes);
}

static int turn(void *context, nssi_rt_request *request, grid from, grid to) {
  (void)context, (void)request;
  for (int i = 0; i < 4; ++i) to[i] = from[3 - i];
  return NESSIE_OK;
}

static int sum(void *context, nssi_rt_request *request, u_quad_t *total) {
  const uint64_t size = nssi_rt_data_bytes(request);
  unsigned char *data = malloc(size + 1);
  const int code = data != NULL ? nssi_rt_get_data(request, data, size, 0) : NESSIE_NO_MEMORY;
  (void)context;
  for (uint64_t i = 0; code == NESSIE_OK && i < size; ++i) *total += data[i];
  free(data);
  return code;
}

static int fill(void *context, nssi_rt_request *request, int value) {
  const uint64_t size = nssi_rt_data_bytes(request);
  char *data = malloc(size + 1);
  (void)context;
  if (data == NULL) return NESSIE_NO_MEMORY;
  memset(data, value, size);
  const int code = nssi_rt_put_data(request, data, size, 0);
  free(data);
  return code;
}

static int negate(void *context, nssi_rt_request *request) {
  const uint64_t size = nssi_rt_data_bytes(request);
  char *data = malloc(size + 1);
  int code = data != NULL ? nssi_rt_get_data(request, data, size, 0) : NESSIE_NO_MEMORY;
  (void)context;
  for (uint64_t i = 0; code == NESSIE_OK && i < size; ++i) data[i] = (char)~data[i];
  if (code == NESSIE_OK) code = nssi_rt_put_data(request, data, size, 0);
  free(data);
  return code;
}

static int refuse(void *context, nssi_rt_request *request, int cause, int *result) {
  (void)context, (void)result;
  return nssi_rt_reply_error(request, NESSIE_IO, NSSI_RT_SCOPE_SERVICE, cause, "No space left on device: free some");
}

static int wait_so_long(void *context, nssi_rt_request *request, int time_ms) {
  (void)request;
  return nssi_rt_sleep(context, time_ms);
}

/* Its caller gets the error of nssi_rt_get_data(). */
static int pull_too_much(void *context, nssi_rt_request *request, int *result) {
  char byte = 0;
  (void)context, (void)result;
  return nssi_rt_get_data(request, &byte, 1, nssi_rt_data_bytes(request));
}

static int32_t kind_of(void *context, uint32_t op) {
  (void)context;
  return op == ADD ? NSSI_RT_SHORT : NSSI_RT_FIBER;
}

int atlas_offer(nssi_rt_runtime *runtime) {
  static atlas_1_service all, without_add;
  all = (atlas_1_service){runtime, kind_of, nothing, add,  greet,  mirror, walk,         length,       find,
                          echo,    turn,    sum,     fill, negate, refuse, wait_so_long, pull_too_much};
  without_add = all;
  without_add.add_1 = NULL;
  const int code = atlas_1_add_to(runtime, 0, &all);
  return code == NESSIE_OK ? atlas_1_add_to(runtime, 1, &without_add) : code;
}
