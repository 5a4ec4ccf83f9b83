/* SPDX-License-Identifier: BSD-3-Clause */
/* Each operation that has an int adds its number to it. */
#include "keeper_rpc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper_c.h"

#if SHUT != 17
#error SHUT is one number
#endif
#if defined OPEN || defined one || defined write
#error What means two numbers, or is in the way, is no macro
#endif

static int add(void *context, nssi_rt_request *request, int number, int *result) {
  (void)context;
  *result = number + (int)nssi_rt_op(request);
  return NESSIE_OK;
}

/* A negative number asks for a byte that the caller has not lent: the caller gets the error of nssi_rt_get_data(). */
static int add_data(void *context, nssi_rt_request *request, int number, int *result) {
  char byte = 0;
  if (number < 0) return nssi_rt_get_data(request, &byte, 1, nssi_rt_data_bytes(request));
  return add(context, request, number, result);
}
static int echo_size(void *context, nssi_rt_request *request, const size *it, size *result) {
  (void)context, (void)request;
  *result = *it;
  return NESSIE_OK;
}
static int echo_numbers(void *context, nssi_rt_request *request, const numbers *it, numbers *result) {
  (void)context, (void)result;
  return keeper_runtime_1_reply(request, it);
}
static int32_t kind_of(void *context, uint32_t op) {
  (void)context;
  return op == keeper_write_1_op ? NSSI_RT_SHORT : NSSI_RT_FIBER;
}

int keeper_offer(nssi_rt_runtime *runtime) {
  static const keeper_1_service keeper = {.kind_of = kind_of,
                                          .write_1 = add,
                                          .data_1 = add_data,
                                          .size_1 = echo_size,
                                          .name_1 = add,
                                          .client_1 = add,
                                          .context_1 = add,
                                          .kind_of_1 = add,
                                          .options_1 = add,
                                          .result_1 = add,
                                          .request_1 = add,
                                          .call_1 = add,
                                          .service_1 = add,
                                          .runtime_1 = echo_numbers,
                                          .null_1 = add,
                                          .objp_1 = add,
                                          .open_1 = add,
                                          .shut_1 = add};
  static const locker_2_service locker = {.open_2 = add};
  const int code = keeper_1_add_to(runtime, 0, &keeper);
  return code == NESSIE_OK ? locker_2_add_to(runtime, 0, &locker) : code;
}

static int faults;
static void check(int number, const char *what, int line) {
  if (number) return;
  ++faults;
  printf("%s:%d: not so: %s\n", __FILE__, line, what);
}
#define CHECK(WHAT) check(WHAT, #WHAT, __LINE__)

int keeper_check(nssi_rt_runtime *runtime, uint64_t peer) {
  const nssi_rt_client client = {runtime, peer, 0};
  int list[most] = {1, 2, 3}, sum = 0;
  const size sent = {.errno_ = ENOENT, .name = 7, .most = most, .is = EOF_};
  numbers values = {most, list}, back = {0, NULL};
  size got;
  nssi_rt_buffer *data = NULL;
  memset(&got, 0, sizeof got);
  faults = 0;
  CHECK(nssi_rt_allocate(runtime, 16, NSSI_RT_READ, &data) == NESSIE_OK);
  CHECK(keeper_write_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 101);
  CHECK(keeper_data_1(&client, 100, data, NULL, &sum) == NESSIE_OK && sum == 102);
  CHECK(keeper_data_1(&client, -1, data, NULL, &sum) == NESSIE_OUT_OF_RANGE && sum == 102);
  CHECK(keeper_size_1(&client, &sent, NULL, &got) == NESSIE_OK && memcmp(&sent, &got, sizeof got) == 0);
  CHECK(keeper_name_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 104);
  CHECK(keeper_client_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 105);
  CHECK(keeper_context_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 106);
  CHECK(keeper_kind_of_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 107);
  CHECK(keeper_options_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 108);
  CHECK(keeper_result_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 109);
  CHECK(keeper_request_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 110);
  CHECK(keeper_call_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 111);
  CHECK(keeper_service_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 112);
  CHECK(keeper_runtime_1(&client, &values, NULL, &back) == NESSIE_OK && back.numbers_len == most);
  CHECK(back.numbers_val && memcmp(back.numbers_val, list, sizeof list) == 0);
  CHECK(keeper_null_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 114);
  CHECK(keeper_objp_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 115);
  CHECK(keeper_open_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 116);
  CHECK(keeper_shut_1(&client, 100, NULL, &sum) == NESSIE_OK && sum == 117);
  CHECK(locker_open_2(&client, 100, NULL, &sum) == NESSIE_OK && sum == 118);
  CHECK(locker_shut_2(&client, 100, NULL, &sum) == NESSIE_NOT_FOUND && sum == 118); /* it is not offered */
  xdr_free((xdrproc_t)xdr_numbers, &back);
  nssi_rt_free_buffer(data);
  return faults;
}
