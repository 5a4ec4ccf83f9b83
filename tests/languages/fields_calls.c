/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client in C can do with a service of fields.x, whatever language that is in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields_c.h"
#include "fields_rpc.h"

enum { CALLS = 50 };

static int faults;

static void expect(int is_so, const char *what) {
  if (is_so) return;
  ++faults;
  printf("%s: not so\n", what);
}

static void expect_code(int code, int wanted, const char *what) {
  if (code == wanted) return;
  ++faults;
  printf("%s: code %d, not %d: %s\n", what, code, wanted, nssi_rt_last_error());
}

static void expect_ok(int code, const char *what) { expect_code(code, NESSIE_OK, what); }

/* --- values of every kind ----------------------------------------------------------------------------------------- */

static void check_numbers(const nssi_rt_client *client) {
  quad_t sum = 0;
  weights from = {1, 2, 3, 4}, blended = {0};
  const double wanted[] = {0.5, 1, 1.5, 2};
  int whole = 42;
  maybe some = &whole, none = NULL, part = NULL;
  expect_ok(fields_nothing_1(client, NULL), "nothing");
  expect_ok(fields_add_1(client, -3, 5000000000, NULL, &sum), "add");
  expect(sum == 4999999997, "a sum");
  expect_ok(fields_add_1(client, 1, 1, NULL, NULL), "a sum that nobody wants");
  expect_ok(fields_blend_1(client, from, 0.5F, NULL, blended), "blend");
  expect(memcmp(blended, wanted, sizeof wanted) == 0, "four weights");
  expect_ok(fields_half_1(client, &none, NULL, &part), "half of nothing");
  expect(part == NULL, "nothing");
  expect_ok(fields_half_1(client, &some, NULL, &part), "half");
  expect(part != NULL && *part == 21, "half of 42");
  xdr_free((xdrproc_t)xdr_maybe, (char *)&part);
}

static void check_greeting(const nssi_rt_client *client, const char *name, char *its_title, const char *wanted) {
  char *greeting = NULL;
  expect_ok(fields_greet_1(client, name, &its_title, NULL, &greeting), "greet");
  expect(greeting != NULL && strcmp(greeting, wanted) == 0, wanted);
  free(greeting);
}

static void check_bytes(const nssi_rt_client *client, u_int size_bytes) {
  octets sent = {size_bytes, malloc(size_bytes + 1)}, got = {0, NULL};
  for (u_int i = 0; i < size_bytes; ++i) sent.octets_val[i] = (char)(i * 131 + (i >> 8) * 7);
  expect_ok(fields_echo_1(client, &sent, NULL, &got), "echo");
  expect(got.octets_len == size_bytes && (size_bytes == 0 || memcmp(got.octets_val, sent.octets_val, size_bytes) == 0),
         "bytes");
  xdr_free((xdrproc_t)xdr_octets, (char *)&got);
  free(sent.octets_val);
}

static void check_texts(const nssi_rt_client *client) {
  char x[] = "x", yy[] = "yy", zzz[] = "zzz", flame[] = "flame 7", none[] = "";
  title all[] = {x, yy, zzz};
  axis which[] = {ALONG_Z, ALONG_Z, ALONG_X};
  const u_int sizes[] = {0, 1, 3, 4096, 300001}; /* the last is more than a message holds */
  titles from = {3, all}, picked = {0, NULL};
  axes three = {3, which};
  check_greeting(client, "world", flame, "hello world, flame 7");
  check_greeting(client, "", none, "hello , ");
  expect_ok(fields_pick_1(client, &from, &three, NULL, &picked), "pick");
  expect(picked.titles_len == 3 && strcmp(picked.titles_val[0], zzz) == 0 && strcmp(picked.titles_val[2], x) == 0,
         "three titles");
  xdr_free((xdrproc_t)xdr_titles, (char *)&picked);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) check_bytes(client, sizes[i]);
}

static void check_structs(const nssi_rt_client *client) {
  char name[] = "s";
  const stamp mark = {name, 7, TRUE, ALONG_Y};
  found answer = {FALSE, {{NULL, 0, FALSE, ALONG_X}}};
  expect_ok(fields_find_1(client, &mark, TRUE, NULL, &answer), "find");
  expect(answer.is_here && strcmp(answer.found_u.what.name, "s") == 0, "an arm");
  expect(answer.found_u.what.step == 7 && answer.found_u.what.is_final && answer.found_u.what.along == ALONG_Y,
         "what it holds");
  xdr_free((xdrproc_t)xdr_found, (char *)&answer);
  expect_ok(fields_find_1(client, &mark, FALSE, NULL, &answer), "do not find");
  expect(!answer.is_here, "no arm");
}

static void check_arrays(const nssi_rt_client *client) {
  static moments all[1000];
  const history none = {0, NULL}, from = {1000, all};
  history shifted = {0, NULL};
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) all[i] = (moments){i, -i, i};
  expect_ok(fields_shift_1(client, &from, 0.5, NULL, &shifted), "shift");
  expect(shifted.history_len == 1000, "as many structs");
  for (u_int i = 0; i < shifted.history_len; ++i)
    wrong += shifted.history_val[i].least != 0.5 - i || shifted.history_val[i].greatest != 0.5 + i;
  expect(wrong == 0, "their numbers");
  xdr_free((xdrproc_t)xdr_history, (char *)&shifted);
  expect_ok(fields_shift_1(client, &none, 0.5, NULL, &shifted), "shift nothing");
  expect(shifted.history_len == 0, "no structs");
  xdr_free((xdrproc_t)xdr_history, (char *)&shifted);
}

static void check_lists(const nssi_rt_client *client) {
  char here[] = "here", home[] = "home";
  stop last = {home, NULL}, first = {here, &last};
  const route two = &first, none = NULL;
  route back = NULL;
  expect_ok(fields_reverse_1(client, &two, NULL, &back), "reverse");
  expect(back != NULL && strcmp(back->place, "home") == 0, "the last stop");
  expect(back != NULL && back->next != NULL && strcmp(back->next->place, "here") == 0, "the first one");
  expect(back != NULL && back->next != NULL && back->next->next == NULL, "two stops");
  xdr_free((xdrproc_t)xdr_route, (char *)&back);
  expect_ok(fields_reverse_1(client, &none, NULL, &back), "reverse nothing");
  expect(back == NULL, "no stops");
}

static void check_trees(const nssi_rt_client *client) {
  tree leaf = {3, {0, NULL}}, children[] = {{1, {0, NULL}}, {2, {1, &leaf}}};
  const tree root = {0, {2, children}};
  tree turned = {7, {0, NULL}};
  expect_ok(fields_mirror_1(client, &root, NULL, &turned), "mirror");
  if (turned.value == 0 && turned.children.children_len == 2) {
    const tree *got = turned.children.children_val;
    expect(got[0].value == 2 && got[1].value == 1 && got[1].children.children_len == 0, "children");
    expect(got[0].children.children_len == 1 && got[0].children.children_val[0].value == 3, "a grandchild");
  } else {
    expect(0, "two children");
  }
  xdr_free((xdrproc_t)xdr_tree, (char *)&turned);
}

/* --- bulk data ---------------------------------------------------------------------------------------------------- */

static void check_bulk_in(const nssi_rt_client *client, nssi_rt_buffer *buffer) {
  const double *field = nssi_rt_buffer_bytes(buffer);
  const uint64_t size = nssi_rt_buffer_size(buffer) / sizeof *field;
  const double n = (double)size;
  moments measured = {0, 0, 0};
  if (field == NULL) return;
  expect_ok(fields_ramp_1(client, ALONG_Z, buffer, NULL), "ramp");
  expect(field[0] == 3 && field[size - 1] == 3 * n, "a ramp");
  expect_ok(fields_scale_1(client, 0.5, buffer, NULL), "scale");
  expect(field[0] == 1.5 && field[size - 1] == 1.5 * n, "half of it");
  expect_ok(fields_measure_1(client, buffer, NULL, &measured), "measure");
  expect(measured.sum == 0.75 * n * (n + 1) && measured.least == 1.5 && measured.greatest == 1.5 * n, "moments");
  expect_ok(nssi_rt_free_buffer(buffer), "free");
}

static void check_bulk(const nssi_rt_client *client) {
  static double field[100000];
  nssi_rt_buffer *lent = NULL, *made = NULL;
  expect_ok(nssi_rt_register(client->runtime, field, sizeof field, NSSI_RT_READ_WRITE, &lent), "register");
  check_bulk_in(client, lent);
  expect_ok(nssi_rt_allocate(client->runtime, 80, NSSI_RT_READ_WRITE, &made), "allocate");
  check_bulk_in(client, made);
}

static void check_bulk_that_is_not_lent(const nssi_rt_client *client) {
  nssi_rt_buffer *buffer = NULL;
  moments measured = {0, 0, 0};
  expect_code(fields_measure_1(client, NULL, NULL, &measured), NESSIE_INVALID_ARGUMENT, "no buffer");
  expect_ok(nssi_rt_allocate(client->runtime, 80, NSSI_RT_WRITE, &buffer), "allocate");
  expect_code(fields_measure_1(client, buffer, NULL, &measured), NESSIE_INVALID_ARGUMENT, "a buffer without the right");
  expect_ok(nssi_rt_free_buffer(buffer), "free");
  expect_ok(nssi_rt_allocate(client->runtime, 80, NSSI_RT_READ, &buffer), "allocate");
  expect_code(fields_ramp_1(client, ALONG_X, buffer, NULL), NESSIE_INVALID_ARGUMENT, "a buffer to read from");
  expect_code(fields_scale_1(client, 2, buffer, NULL), NESSIE_INVALID_ARGUMENT, "the same");
  expect_ok(nssi_rt_free_buffer(buffer), "free");
  expect_code(nssi_rt_free_buffer(buffer), NESSIE_INVALID_ARGUMENT, "a buffer that is free already");
}

/* --- errors, time, versions --------------------------------------------------------------------------------------- */

static int raw_call(const nssi_rt_client *client, uint32_t version, uint32_t op, const void *args,
                    uint64_t size_bytes) {
  const nssi_rt_service service = {client->peer, FIELDS, version, 0};
  nssi_rt_call *call = NULL;
  expect_ok(nssi_rt_start(client->runtime, &service, op, args, size_bytes, NULL, &call), "start");
  const int code = nssi_rt_wait(call, 20000);
  expect_ok(nssi_rt_free_call(call), "free a call");
  return code;
}

static void check_errors(const nssi_rt_client *client) {
  axis none = (axis)7;
  char four[] = "four", long_one[] = "more than twenty characters";
  title it = four, too_long = long_one, repeated = NULL;
  titles picked = {0, NULL};
  int number = 5;
  const char bytes[1000] = {1, 1, 1, 1, 1};
  expect_code(fields_refuse_1(client, 28, NULL, &number), NESSIE_IO, "the code of an error");
  expect(number == 5 && nssi_rt_last_cause() == 28, "its cause");
  expect(nssi_rt_last_scope() == NSSI_RT_SCOPE_SERVICE, "its scope");
  expect(strcmp(nssi_rt_last_error(), "No space left on device: free some") == 0, "its sentence");
  expect_code(fields_repeat_1(client, &it, 6, NULL, &repeated), NESSIE_INTERNAL, "a result beyond its bound");
  expect_ok(fields_repeat_1(client, &it, 5, NULL, &repeated), "a result within it");
  expect(repeated != NULL && strlen(repeated) == 20, "its length");
  free(repeated);
  expect_code(fields_repeat_1(client, &too_long, 1, NULL, &repeated), NESSIE_INVALID_ARGUMENT, "a long argument");
  expect_code(fields_pick_1(client, &(titles){0, NULL}, &(axes){1, &none}, NULL, &picked), NESSIE_BAD_MESSAGE,
              "an enum without a name");
  for (uint64_t size = 1; size < sizeof bytes; size = size * 3 + 2)
    expect_code(raw_call(client, ONE, ADD, bytes, size), NESSIE_BAD_MESSAGE, "arguments that are none");
}

/* What was never sent, and the result of another operation. */
static void check_misuse(const nssi_rt_client *client) {
  quad_t sum = 7;
  char *greeting = NULL;
  history shifted = {77, NULL};
  nssi_rt_call *call = NULL;
  expect_code(fields_add_1(NULL, 1, 1, NULL, &sum), NESSIE_INVALID_ARGUMENT, "no client");
  expect_code(fields_greet_1(client, NULL, NULL, NULL, &greeting), NESSIE_INVALID_ARGUMENT, "no name");
  expect_code(fields_shift_1(client, NULL, 0.5, NULL, &shifted), NESSIE_INVALID_ARGUMENT, "no array");
  expect_ok(fields_add_1_async(client, 1, 1, NULL, &call), "start to add");
  expect_code(fields_greet_1_wait(call, -1, &greeting), NESSIE_BAD_MESSAGE, "a greeting of numbers");
  expect_code(fields_nothing_1_wait(call, -1), NESSIE_BAD_MESSAGE, "nothing of a number");
  expect(sum == 7 && greeting == NULL && shifted.history_len == 77, "results are left alone");
  expect_ok(nssi_rt_free_call(call), "free a call");
}

static void check_deadlines(const nssi_rt_client *client) {
  const nssi_rt_call_options soon = {.timeout_ms = 20};
  nssi_rt_call *call = NULL;
  int32_t is_over = -1;
  int rested = 0;
  expect_code(fields_rest_1(client, 60000, &soon, &rested), NESSIE_TIMED_OUT, "a deadline");
  expect_ok(fields_rest_1(client, 50, NULL, &rested), "rest");
  expect(rested == 50, "it has rested");
  expect_ok(fields_rest_1_async(client, 60000, NULL, &call), "start to rest long");
  expect_code(fields_rest_1_wait(call, 0, &rested), NESSIE_TIMED_OUT, "a call that goes on");
  expect_ok(nssi_rt_test(call, &is_over), "test");
  expect(is_over == 0, "it is not over");
  expect_ok(nssi_rt_cancel(call), "cancel");
  expect_code(fields_rest_1_wait(call, 20000, &rested), NESSIE_CANCELLED, "a call that was cancelled");
  expect_ok(nssi_rt_free_call(call), "free a call");
}

static void check_many(const nssi_rt_client *client) {
  nssi_rt_call *calls[CALLS + 1] = {NULL};
  expect_ok(fields_rest_1_async(client, 60000, NULL, &calls[CALLS]), "start a long one");
  for (int i = 0; i < CALLS; ++i)
    expect_ok(i % 2 == 0 ? fields_add_1_async(client, i, 1, NULL, &calls[i])
                         : fields_rest_1_async(client, (u_int)(i % 7), NULL, &calls[i]),
              "start one of many");
  for (int i = 0; i < CALLS; ++i) {
    uint64_t which = 0;
    quad_t sum = -1;
    int rested = -1;
    expect_ok(nssi_rt_wait_any(calls, CALLS + 1, 20000, &which), "wait for any");
    const int n = (int)which;
    expect_ok(n % 2 == 0 ? fields_add_1_wait(calls[n], 0, &sum) : fields_rest_1_wait(calls[n], 0, &rested),
              "its result");
    expect(n % 2 == 0 ? sum == n + 1 : rested == n % 7, "which is its own");
    expect_ok(nssi_rt_free_call(calls[n]), "free a call");
    calls[n] = NULL;
  }
  expect_ok(nssi_rt_free_call(calls[CALLS]), "free the long one");
}

/* One-way calls have no result, whatever the interface says; of several the first error is told. */
static void check_options(const nssi_rt_client *client) {
  const nssi_rt_call_options one_way = {.one_way = 1, .when_busy = NSSI_RT_FAIL_WHEN_BUSY};
  const nssi_rt_client clients[2] = {*client, {client->runtime, client->peer, 99}};
  nssi_rt_call *calls[2] = {NULL, NULL};
  quad_t sum = 7;
  expect_ok(fields_add_1(client, 1, 2, &one_way, &sum), "one way");
  expect(sum == 0, "no result");
  for (int i = 0; i < 2; ++i) expect_ok(fields_add_1_async(&clients[i], 1, 2, NULL, &calls[i]), "start one of two");
  expect_code(nssi_rt_wait_all(calls, 2, -1), NESSIE_NOT_FOUND, "of two providers one is missing");
  expect_ok(fields_add_1_wait(calls[0], -1, &sum), "the other's result");
  expect(sum == 3, "which is 3");
  for (int i = 0; i < 2; ++i) expect_ok(nssi_rt_free_call(calls[i]), "free a call");
}

static void check_versions(const nssi_rt_client *client) {
  nssi_rt_client second = *client;
  int sum = 0;
  second.provider = 5;
  expect_ok(fields_add_2(&second, 1, 2, 3, NULL, &sum), "add three");
  expect(sum == 6, "a sum of three");
  expect_code(fields_add_2(client, 1, 2, 3, NULL, &sum), NESSIE_NOT_FOUND, "another provider");
  expect_code(raw_call(client, 9, NOTHING, NULL, 0), NESSIE_UNSUPPORTED, "another version");
  expect_code(raw_call(client, ONE, 999, NULL, 0), NESSIE_NOT_FOUND, "another operation");
}

int fields_check_all(nssi_rt_runtime *runtime, uint64_t peer) {
  const nssi_rt_client client = {runtime, peer, 0};
  check_numbers(&client);
  check_texts(&client);
  check_structs(&client);
  check_arrays(&client);
  check_lists(&client);
  check_trees(&client);
  check_bulk(&client);
  check_bulk_that_is_not_lent(&client);
  check_errors(&client);
  check_misuse(&client);
  check_deadlines(&client);
  check_many(&client);
  check_options(&client);
  check_versions(&client);
  return faults;
}
