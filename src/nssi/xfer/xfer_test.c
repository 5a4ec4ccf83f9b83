/* SPDX-License-Identifier: BSD-3-Clause */
/* The paper's transfer service end to end, in C: a server process, a client process, rpcgen's codecs between them; by
 * the paper's interface, and by that of Trios 12. Prints what failed; exit code 0: nothing did. */
#ifdef XFER_BY_TRIOS
#include <Trios_nssi_client.h>
#include <Trios_nssi_server.h>
#define TRANSPORT NSSI_RPC_SHM
#else
#include <nssi/nssi.h>
#define TRANSPORT NNTI_TRANSPORT_SHM
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transfer.h"

enum {
  XFER_WRITE_ENCODE_OP = 1,
  XFER_WRITE_RDMA_OP = 2,
  XFER_READ_ENCODE_OP = 3,
  XFER_READ_RDMA_OP = 4,
  XFER_RETURN_CODE_OP = 5,
  XFER_NO_RESULT_OP = 6,
  XFER_UNKNOWN_OP = 7,
  XFER_OPERATORS_OP = 8,
  WATCHDOG_SECONDS = 100,
  CODE_OF_THE_STUB = 1042,
  CODE_OF_THE_SECOND_STUB = 1043
};

static int failures = 0;

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, nssi_last_error()); \
      ++failures;                                                                             \
    }                                                                                         \
  } while (0)

/* The paper's rule: element i of an array of `seed` is seed + 1024 + i. */
static void fill(data_t *array, unsigned len, int seed) {
  for (unsigned i = 0; i < len; ++i) {
    array[i].int_val = seed + 1024 + (int)i;
    array[i].float_val = (float)array[i].int_val;
    array[i].double_val = (double)array[i].int_val;
  }
}

static int is_filled(const data_t *array, unsigned len, int seed) {
  for (unsigned i = 0; i < len; ++i) {
    const int expected = seed + 1024 + (int)i;
    if (array[i].int_val != expected || array[i].float_val != (float)expected ||
        array[i].double_val != (double)expected)
      return 0;
  }
  return 1;
}

static data_t *new_array(unsigned len) {
  data_t *array = calloc(len + 1, sizeof *array);
  if (array == NULL) abort();
  return array;
}

/* --- server -------------------------------------------------------------------------------------------------------- */

static int xfer_write_encode_srvr(const unsigned long request_id, const NNTI_peer_t *caller,
                                  const xfer_write_encode_args *write, const NNTI_buffer_t *data_addr,
                                  const NNTI_buffer_t *res_addr) {
  (void)data_addr;
  const data_array_t *array = &write->array;
  const int good = array->data_array_t_len == write->args.len &&
                   is_filled(array->data_array_t_val, write->args.len, write->args.seed);
  return nssi_send_result(caller, request_id, good ? NSSI_OK : NSSI_EDECODE, NULL, res_addr);
}

static int xfer_write_rdma_srvr(const unsigned long request_id, const NNTI_peer_t *caller, const xfer_args *args,
                                const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) {
  data_t *array = new_array(args->len);
  int rc = nssi_get_data(caller, array, args->len * sizeof *array, data_addr);
  if (rc == NSSI_OK && !is_filled(array, args->len, args->seed)) rc = NSSI_EIO;
  free(array);
  return nssi_send_result(caller, request_id, rc, NULL, res_addr);
}

static int xfer_read_encode_srvr(const unsigned long request_id, const NNTI_peer_t *caller, const xfer_args *args,
                                 const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) {
  (void)data_addr;
  data_array_t res = {args->len, new_array(args->len)};
  fill(res.data_array_t_val, args->len, args->seed);
  const int rc = nssi_send_result(caller, request_id, NSSI_OK, &res, res_addr);
  free(res.data_array_t_val);
  return rc;
}

static int xfer_read_rdma_srvr(const unsigned long request_id, const NNTI_peer_t *caller, const xfer_args *args,
                               const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) {
  data_t *array = new_array(args->len);
  fill(array, args->len, args->seed);
  const int rc = nssi_put_data(caller, array, args->len * sizeof *array, data_addr, -1);
  free(array);
  return nssi_send_result(caller, request_id, rc, NULL, res_addr);
}

static int return_code_srvr(const unsigned long request_id, const NNTI_peer_t *caller, const void *args,
                            const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) {
  (void)args;
  (void)data_addr;
  return nssi_send_result(caller, request_id, CODE_OF_THE_STUB, NULL, res_addr);
}

static int second_return_code_srvr(const unsigned long request_id, const NNTI_peer_t *caller, const void *args,
                                   const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) {
  (void)args;
  (void)data_addr;
  return nssi_send_result(caller, request_id, CODE_OF_THE_SECOND_STUB, NULL, res_addr);
}

static int no_result_srvr(const unsigned long request_id, const NNTI_peer_t *caller, const void *args,
                          const NNTI_buffer_t *data_addr, const NNTI_buffer_t *res_addr) {
  (void)request_id, (void)caller, (void)args, (void)data_addr, (void)res_addr;
  return NSSI_OK;
}

/* The same process, with another stub for a number that has had one. */
static void serve_something_else(nssi_service *service, int ready_pipe) {
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_RETURN_CODE_OP, second_return_code_srvr, void, void) == NSSI_OK);
  CHECK(write(ready_pipe, "!", 1) == 1);
  CHECK(nssi_service_start(service) == NSSI_OK);
  CHECK(nssi_service_fini(service) == NSSI_OK);
  setenv("NESSIE_NSSI_OP_OP7_ROLE", "king", 1);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_UNKNOWN_OP, return_code_srvr, void, void) == NSSI_OK);
  CHECK(nssi_service_start(service) == NSSI_EINVAL);
  CHECK(nssi_service_fini(service) == NSSI_OK);
}

static int serve(int url_pipe) {
  nssi_service service;
  char url[NSSI_URL_LEN];
  CHECK(nssi_init(TRANSPORT) == NSSI_OK);
  CHECK(nssi_service_init(TRANSPORT, 0, &service) == NSSI_OK);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_WRITE_ENCODE_OP, xfer_write_encode_srvr, xfer_write_encode_args, void) ==
        NSSI_OK);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_WRITE_RDMA_OP, xfer_write_rdma_srvr, xfer_args, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_READ_ENCODE_OP, xfer_read_encode_srvr, xfer_args, data_array_t) == NSSI_OK);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_READ_RDMA_OP, xfer_read_rdma_srvr, xfer_args, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_RETURN_CODE_OP, return_code_srvr, void, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_RETURN_CODE_OP, return_code_srvr, void, void) == NSSI_EEXIST);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_NO_RESULT_OP, no_result_srvr, void, void) == NSSI_OK);
  setenv("NESSIE_NSSI_OP_OP8_ROLE", "operator", 1);
  CHECK(NSSI_REGISTER_SERVER_STUB(XFER_OPERATORS_OP, return_code_srvr, void, void) == NSSI_OK);
  CHECK(nssi_get_url(TRANSPORT, url, 3) == NSSI_EMSGSIZE);
  CHECK(nssi_get_url(TRANSPORT, url, sizeof url) == NSSI_OK);
  CHECK(write(url_pipe, url, sizeof url) == (ssize_t)sizeof url);
  CHECK(nssi_service_start(&service) == NSSI_OK);
  CHECK(nssi_service_fini(&service) == NSSI_OK);
  serve_something_else(&service, url_pipe);
  CHECK(nssi_fini(TRANSPORT) == NSSI_OK);
  return failures;
}

/* --- client -------------------------------------------------------------------------------------------------------- */

static void write_and_read(const nssi_service *svc, unsigned len, int seed) {
  data_t *array = new_array(len);
  fill(array, len, seed);
  xfer_args args = {.len = len, .seed = seed};
  xfer_write_encode_args encoded = {args, {len, array}};
  CHECK(nssi_call_rpc_sync(svc, XFER_WRITE_ENCODE_OP, &encoded, NULL, 0, NULL) == NSSI_OK);
  CHECK(nssi_call_rpc_sync(svc, XFER_WRITE_RDMA_OP, &args, array, len * sizeof *array, NULL) == NSSI_OK);

  data_array_t res = {0, NULL};
  CHECK(nssi_call_rpc_sync(svc, XFER_READ_ENCODE_OP, &args, NULL, 0, &res) == NSSI_OK);
  CHECK(res.data_array_t_len == len && is_filled(res.data_array_t_val, len, seed));
  xdr_free((xdrproc_t)&xdr_data_array_t, (char *)&res);

  memset(array, 0, len * sizeof *array);
  CHECK(nssi_call_rpc_sync(svc, XFER_READ_RDMA_OP, &args, array, len * sizeof *array, NULL) == NSSI_OK);
  CHECK(is_filled(array, len, seed));
  free(array);
}

static void many_at_once(const nssi_service *svc) {
  enum { kCalls = 16, kLen = 1000 };
  nssi_request requests[kCalls];
  xfer_args args[kCalls];
  data_t *arrays[kCalls];
  for (int i = 0; i < kCalls; ++i) {
    arrays[i] = new_array(kLen);
    args[i] = (xfer_args){.len = kLen, .seed = i * 7};
    CHECK(nssi_call_rpc(svc, XFER_READ_RDMA_OP, &args[i], arrays[i], kLen * sizeof(data_t), NULL, &requests[i]) ==
          NSSI_OK);
  }
  int which = -1, rc = -1;
  CHECK(nssi_waitany(requests, kCalls, -1, &which, &rc) == NSSI_OK && which >= 0 && rc == NSSI_OK);
  CHECK(nssi_waitall(requests, kCalls, -1) == NSSI_OK);
  CHECK(nssi_waitany(requests, kCalls, -1, &which, &rc) == NSSI_ENOENT);
  for (int i = 0; i < kCalls; ++i) {
    CHECK(is_filled(arrays[i], kLen, i * 7));
    free(arrays[i]);
  }
}

static void errors(const nssi_service *svc) {
  nssi_request request;
  int rc = 0;
  CHECK(nssi_call_rpc(svc, XFER_RETURN_CODE_OP, NULL, NULL, 0, NULL, &request) == NSSI_OK);
  while ((rc = nssi_test(&request, &rc)) == NSSI_EWOULDBLOCK) {}
  CHECK(rc == NSSI_OK);
  CHECK(nssi_wait(&request, &rc) == NSSI_OK && rc == CODE_OF_THE_STUB);
  CHECK(nssi_call_rpc_sync(svc, XFER_RETURN_CODE_OP, NULL, NULL, 0, NULL) == CODE_OF_THE_STUB);
  CHECK(nssi_call_rpc_sync(svc, XFER_NO_RESULT_OP, NULL, NULL, 0, NULL) == NSSI_EBADRPC);
  CHECK(nssi_call_rpc_sync(svc, XFER_UNKNOWN_OP, NULL, NULL, 0, NULL) == NSSI_ENOENT);
  CHECK(nssi_call_rpc_sync(svc, 99, NULL, NULL, 0, NULL) == NSSI_ENOENT);
  CHECK(nssi_call_rpc_sync(svc, XFER_OPERATORS_OP, NULL, NULL, 0, NULL) == NSSI_EPERM);

  xfer_args args = {.len = 10, .seed = 1};
  char small[8];
  CHECK(nssi_call_rpc_sync(svc, XFER_READ_RDMA_OP, &args, small, sizeof small, NULL) == NSSI_EINVAL);
  CHECK(nssi_call_rpc_sync(svc, XFER_READ_RDMA_OP, &args, NULL, 0, NULL) == NSSI_EINVAL);
  CHECK(nssi_wait(NULL, &rc) == NSSI_EINVAL);
  CHECK(nssi_call_rpc(NULL, XFER_READ_RDMA_OP, &args, NULL, 0, NULL, &request) == NSSI_EINVAL);
  CHECK(strcmp(nssi_err_str(NSSI_ETIMEDOUT), "NSSI_ETIMEDOUT") == 0);
  CHECK(nssi_send_result(&svc->svc_host, 1, NSSI_OK, NULL, NULL) == NSSI_EINVAL);
}

/* It goes on over the same connection. */
static void use_what_serves_now(const nssi_service *svc, int ready_pipe) {
  char ready = 0;
  CHECK(read(ready_pipe, &ready, 1) == 1);
  CHECK(nssi_call_rpc_sync(svc, XFER_RETURN_CODE_OP, NULL, NULL, 0, NULL) == CODE_OF_THE_SECOND_STUB);
  CHECK(nssi_call_rpc_sync(svc, XFER_NO_RESULT_OP, NULL, NULL, 0, NULL) == NSSI_ENOENT);
  CHECK(nssi_kill(svc, 0, 20000) == NSSI_OK);
}

static void use(const char *url, int ready_pipe) {
  nssi_service svc;
  CHECK(nssi_get_service(TRANSPORT, url, 20000, &svc) == NSSI_ENOTINIT);
  CHECK(nssi_init(TRANSPORT) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_WRITE_ENCODE_OP, xfer_write_encode_args, void, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_WRITE_RDMA_OP, xfer_args, data_t, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_READ_ENCODE_OP, xfer_args, void, data_array_t) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_READ_RDMA_OP, xfer_args, data_t, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_RETURN_CODE_OP, void, void, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_NO_RESULT_OP, void, void, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_UNKNOWN_OP, void, void, void) == NSSI_OK);
  CHECK(NSSI_REGISTER_CLIENT_STUB(XFER_OPERATORS_OP, void, void, void) == NSSI_OK);
  CHECK(nssi_get_service(TRANSPORT, "nonsense", 1000, &svc) == NSSI_EINVAL);
  CHECK(nssi_get_service(TRANSPORT, url, 20000, &svc) == NSSI_OK);
  const unsigned lengths[] = {0, 1, 10, 1000, 100000};
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; ++i) write_and_read(&svc, lengths[i], (int)i);
  many_at_once(&svc);
  errors(&svc);
  CHECK(nssi_kill(&svc, 0, 20000) == NSSI_OK);
  use_what_serves_now(&svc, ready_pipe);
  CHECK(nssi_free_service(TRANSPORT, &svc) == NSSI_OK);
  CHECK(nssi_fini(TRANSPORT) == NSSI_OK);
}

int main(void) {
  int url_pipe[2];
  char url[NSSI_URL_LEN] = "";
  alarm(WATCHDOG_SECONDS);
  if (pipe(url_pipe) != 0) return 1;
  const pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(url_pipe[0]);
    return serve(url_pipe[1]);
  }
  close(url_pipe[1]);
  CHECK(read(url_pipe[0], url, sizeof url) == (ssize_t)sizeof url);
  use(url, url_pipe[0]);
  int status = -1;
  if (failures != 0) kill(server, SIGKILL);
  CHECK(waitpid(server, &status, 0) == server && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (failures == 0) printf("the transfer service works\n");
  return failures != 0;
}
