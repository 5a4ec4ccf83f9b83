/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of atlas.x in C, by the stubs that nessie idl makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atlas_c.h"
#include "atlas_rpc.h"

enum { BUFFER_BYTES = 100000, CALLS = 50 };

static int failures;

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, nssi_rt_last_error()); \
      ++failures;                                                                                \
    }                                                                                            \
  } while (0)

static void check_values(const nssi_rt_client *client) {
  int sum = 0, points = 0;
  char *greeting = NULL;
  point mirrored = {0, 0}, way[2] = {{1, 2}, {3, 4}};
  path walked = {0, NULL}, two = {2, way};
  found it = {0};
  CHECK(atlas_nothing_1(client, NULL) == NESSIE_OK);
  CHECK(atlas_add_1(client, 40, 2, NULL, &sum) == NESSIE_OK && sum == 42);
  CHECK(atlas_add_1(client, 40, 2, NULL, NULL) == NESSIE_OK);
  CHECK(atlas_greet_1(client, "Ada", NULL, &greeting) == NESSIE_OK && strcmp(greeting, "hello Ada") == 0);
  CHECK(atlas_mirror_1(client, &way[1], NULL, &mirrored) == NESSIE_OK && mirrored.x == -3 && mirrored.y == -4);
  CHECK(atlas_walk_1(client, &way[0], 3, NULL, &walked) == NESSIE_OK && walked.path_len == 3);
  CHECK(walked.path_len == 3 && walked.path_val[2].x == 3 && walked.path_val[2].y == 2);
  CHECK(atlas_length_1(client, &two, NULL, &points) == NESSIE_OK && points == 2);
  CHECK(atlas_find_1(client, RED, NULL, &it) == NESSIE_OK && it.is_here && it.found_u.where.y == 2);
  CHECK(atlas_find_1(client, GREEN, NULL, &it) == NESSIE_OK && !it.is_here);
  free(greeting);
  xdr_free((xdrproc_t)xdr_path, (char *)&walked);
}

static void check_arrays(const nssi_rt_client *client) {
  const u_int sizes[] = {0, 1, 511, 512, 4096, 100000, 1 << 20};
  grid from = {1, 2, 3, 4}, to = {0};
  CHECK(atlas_turn_1(client, from, NULL, to) == NESSIE_OK && to[0] == 4 && to[3] == 1);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    parcel sent = {sizes[i], malloc(sizes[i] + 1)}, got = {0, NULL};
    for (u_int k = 0; k < sizes[i]; ++k) sent.parcel_val[k] = (char)(k * 131 + (k >> 8) * 7);
    CHECK(atlas_echo_1(client, &sent, NULL, &got) == NESSIE_OK && got.parcel_len == sizes[i]);
    CHECK(got.parcel_len == sizes[i] && (sizes[i] == 0 || memcmp(got.parcel_val, sent.parcel_val, sizes[i]) == 0));
    xdr_free((xdrproc_t)xdr_parcel, (char *)&got);
    free(sent.parcel_val);
  }
}

static void check_bulk(const nssi_rt_client *client) {
  nssi_rt_buffer *buffer = NULL;
  u_quad_t sum = 0;
  CHECK(nssi_rt_allocate(client->runtime, BUFFER_BYTES, NSSI_RT_READ_WRITE, &buffer) == NESSIE_OK);
  const unsigned char *bytes = nssi_rt_buffer_bytes(buffer);
  CHECK(atlas_fill_1(client, 3, buffer, NULL) == NESSIE_OK && bytes[0] == 3 && bytes[BUFFER_BYTES - 1] == 3);
  CHECK(atlas_sum_1(client, buffer, NULL, &sum) == NESSIE_OK && sum == 3 * BUFFER_BYTES);
  CHECK(atlas_negate_1(client, buffer, NULL) == NESSIE_OK && bytes[0] == 0xfc && bytes[BUFFER_BYTES - 1] == 0xfc);
  CHECK(nssi_rt_free_buffer(buffer) == NESSIE_OK);
}

static void check_own_memory(const nssi_rt_client *client) {
  static unsigned char memory[4096];
  nssi_rt_buffer *buffer = NULL;
  u_quad_t sum = 7;
  memset(memory, 1, sizeof memory);
  CHECK(nssi_rt_register(client->runtime, memory, sizeof memory, NSSI_RT_READ, &buffer) == NESSIE_OK);
  CHECK(atlas_sum_1(client, buffer, NULL, &sum) == NESSIE_OK && sum == sizeof memory);
  CHECK(atlas_fill_1(client, 3, buffer, NULL) == NESSIE_INVALID_ARGUMENT && memory[0] == 1);
  CHECK(atlas_negate_1(client, buffer, NULL) == NESSIE_INVALID_ARGUMENT);
  CHECK(atlas_sum_1(client, NULL, NULL, &sum) == NESSIE_INVALID_ARGUMENT && sum == sizeof memory);
  CHECK(nssi_rt_free_buffer(buffer) == NESSIE_OK);
}

static void check_several_at_once(const nssi_rt_client *client) {
  nssi_rt_call *calls[CALLS] = {NULL};
  uint64_t which = CALLS;
  for (int i = 0; i < CALLS; ++i) CHECK(atlas_add_1_async(client, i, i, NULL, &calls[i]) == NESSIE_OK);
  for (int i = 0; i < CALLS; ++i) {
    int sum = -1;
    CHECK(nssi_rt_wait_any(calls, CALLS, -1, &which) == NESSIE_OK && which < CALLS);
    CHECK(atlas_add_1_wait(calls[which], 0, &sum) == NESSIE_OK && sum == 2 * (int)which);
    CHECK(nssi_rt_free_call(calls[which]) == NESSIE_OK);
    calls[which] = NULL;
  }
}

static void check_errors(const nssi_rt_client *client) {
  int result = 5;
  path way = {77, NULL};
  CHECK(atlas_refuse_1(client, 28, NULL, &result) == NESSIE_IO && result == 5);
  CHECK(nssi_rt_last_scope() == NSSI_RT_SCOPE_SERVICE && nssi_rt_last_cause() == 28);
  CHECK(strcmp(nssi_rt_last_error(), "No space left on device: free some") == 0);
  const point here = {0, 0};
  CHECK(atlas_walk_1(client, &here, MOST + 1, NULL, &way) == NESSIE_INTERNAL && way.path_len == 77);
  nssi_rt_buffer *buffer = NULL;
  CHECK(nssi_rt_allocate(client->runtime, 10, NSSI_RT_READ, &buffer) == NESSIE_OK);
  CHECK(atlas_pull_too_much_1(client, buffer, NULL, &result) == NESSIE_OUT_OF_RANGE);
  CHECK(nssi_rt_free_buffer(buffer) == NESSIE_OK);
}

static void check_arguments(const nssi_rt_client *client) {
  point way[MOST + 1] = {{0, 0}};
  path too_long = {MOST + 1, way};
  int points = -1, sum = 0;
  char *greeting = NULL;
  found it = {0};
  CHECK(atlas_length_1(client, &too_long, NULL, &points) == NESSIE_INVALID_ARGUMENT && points == -1);
  CHECK(atlas_length_1(client, NULL, NULL, &points) == NESSIE_INVALID_ARGUMENT);
  CHECK(atlas_greet_1(client, NULL, NULL, &greeting) == NESSIE_INVALID_ARGUMENT && greeting == NULL);
  CHECK(atlas_find_1(client, (color)7, NULL, &it) == NESSIE_BAD_MESSAGE);
  CHECK(atlas_add_1(NULL, 1, 1, NULL, &sum) == NESSIE_INVALID_ARGUMENT && sum == 0);
  CHECK(atlas_add_1(client, 1, 1, NULL, &sum) == NESSIE_OK && sum == 2);
}

static int raw_call(const nssi_rt_client *client, uint32_t version, uint32_t op, uint64_t args_bytes) {
  const nssi_rt_service service = {client->peer, ATLAS, version, 0};
  nssi_rt_call *call = NULL;
  char args[8] = {0};
  CHECK(nssi_rt_start(client->runtime, &service, op, args, args_bytes, NULL, &call) == NESSIE_OK);
  const int code = nssi_rt_wait(call, -1);
  CHECK(nssi_rt_free_call(call) == NESSIE_OK);
  return code;
}

static void check_what_is_not_there(const nssi_rt_client *client) {
  nssi_rt_client other = *client;
  nssi_rt_call *call = NULL;
  char *greeting = NULL;
  CHECK(raw_call(client, FIRST, 999, 0) == NESSIE_NOT_FOUND);
  CHECK(raw_call(client, 9, ADD, 8) == NESSIE_UNSUPPORTED);
  CHECK(raw_call(client, FIRST, ADD, 5) == NESSIE_BAD_MESSAGE);
  other.provider = 99;
  CHECK(atlas_nothing_1(&other, NULL) == NESSIE_NOT_FOUND);
  CHECK(atlas_add_1_async(client, 1, 1, NULL, &call) == NESSIE_OK);
  CHECK(atlas_greet_1_wait(call, -1, &greeting) == NESSIE_BAD_MESSAGE && greeting == NULL);
  CHECK(atlas_nothing_1_wait(call, -1) == NESSIE_BAD_MESSAGE);
  CHECK(nssi_rt_free_call(call) == NESSIE_OK);
}

static void check_deadlines(const nssi_rt_client *client) {
  const nssi_rt_call_options soon = {.timeout_ms = 50}, late = {.timeout_ms = 60000};
  nssi_rt_call *call = NULL;
  int32_t is_over = -1;
  CHECK(atlas_wait_1(client, 60000, &soon) == NESSIE_TIMED_OUT);
  CHECK(atlas_wait_1_async(client, 60000, &late, &call) == NESSIE_OK);
  CHECK(atlas_wait_1_wait(call, 1) == NESSIE_TIMED_OUT);
  CHECK(nssi_rt_test(call, &is_over) == NESSIE_OK && is_over == 0);
  CHECK(nssi_rt_cancel(call) == NESSIE_OK && atlas_wait_1_wait(call, -1) == NESSIE_CANCELLED);
  CHECK(nssi_rt_free_call(call) == NESSIE_OK);
}

/* One-way calls have no result, whatever the interface says; several services are called one after the other. */
static void check_options(const nssi_rt_client *client) {
  const nssi_rt_call_options one_way = {.one_way = 1, .when_busy = NSSI_RT_FAIL_WHEN_BUSY};
  const nssi_rt_client clients[2] = {*client, {client->runtime, client->peer, 99}};
  nssi_rt_call *calls[2] = {NULL, NULL};
  int sum = 7;
  CHECK(atlas_add_1(client, 1, 2, &one_way, &sum) == NESSIE_OK && sum == 0);
  for (int i = 0; i < 2; ++i) CHECK(atlas_add_1_async(&clients[i], 1, 2, NULL, &calls[i]) == NESSIE_OK);
  CHECK(nssi_rt_wait_all(calls, 2, -1) == NESSIE_NOT_FOUND);
  CHECK(atlas_add_1_wait(calls[0], -1, &sum) == NESSIE_OK && sum == 3);
  for (int i = 0; i < 2; ++i) CHECK(nssi_rt_free_call(calls[i]) == NESSIE_OK);
}

int atlas_check(nssi_rt_runtime *runtime, uint64_t peer) {
  const nssi_rt_client client = {runtime, peer, 0};
  failures = 0;
  check_values(&client);
  check_arrays(&client);
  check_bulk(&client);
  check_own_memory(&client);
  check_several_at_once(&client);
  check_errors(&client);
  check_arguments(&client);
  check_what_is_not_there(&client);
  check_deadlines(&client);
  check_options(&client);
  return failures;
}

int atlas_check_c_service(nssi_rt_runtime *runtime, uint64_t peer) {
  const nssi_rt_client client = {runtime, peer, 1};
  int sum = 0;
  failures = 0;
  CHECK(atlas_nothing_1(&client, NULL) == NESSIE_OK);
  CHECK(atlas_add_1(&client, 1, 1, NULL, &sum) == NESSIE_NOT_FOUND && sum == 0);
  return failures;
}
