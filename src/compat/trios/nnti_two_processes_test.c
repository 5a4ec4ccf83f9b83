/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs in C as they were written for Trios' NNTI: two processes, work requests, handles in messages.
 * usage: two_processes_test TRANSPORT-NUMBER; exit code 77: this machine does not have the transport. */
#include <Trios_logger.h>
#include <Trios_nnti.h>
#include <Trios_timer.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWatchdogMs = 60000, kElements = 4, kElementSize = 256, kSkipped = 77 };

static const char *role = "?";

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) {                                                                                 \
      fprintf(stderr, "%s: %s:%d: %s (%s)\n", role, __FILE__, __LINE__, #condition, nnti_last_error()); \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

struct side {
  NNTI_transport_t transport;
  int to, from; /* pipes to the other process */
  NNTI_buffer_t spare;
  NNTI_buffer_t queue; /* the server's */
  NNTI_peer_t server;  /* the client's */
};

/* --- talking beside NNTI, while it makes progress ---------------------------------------------------------------------- */

static void write_all(int fd, const void *bytes, size_t size) { CHECK(write(fd, bytes, size) == (ssize_t)size); }

static void read_all(struct side *side, void *bytes, size_t size) {
  NNTI_work_request_t nothing;
  NNTI_status_t status;
  struct pollfd readable = {side->from, POLLIN, 0};
  char *at = bytes;
  CHECK(NNTI_create_work_request(&side->spare, &nothing) == NNTI_OK);
  while (size > 0) {
    if (poll(&readable, 1, 0) > 0) {
      const ssize_t got = read(side->from, at, size);
      CHECK(got > 0);
      at += got;
      size -= (size_t)got;
    } else {
      CHECK(NNTI_wait(&nothing, 10, &status) == NNTI_ETIMEDOUT);
    }
  }
  CHECK(NNTI_destroy_work_request(&nothing) == NNTI_OK);
}

static void tell(struct side *side) { write_all(side->to, "x", 1); }
static void await(struct side *side) {
  char byte;
  read_all(side, &byte, 1);
}

static void give_handle(struct side *side, NNTI_buffer_t *buffer) {
  uint64_t size = 0;
  CHECK(NNTI_dt_sizeof(&side->transport, buffer, &size) == NNTI_OK);
  char *packed = malloc(size);
  CHECK(NNTI_dt_pack(&side->transport, buffer, packed, size) == NNTI_OK);
  write_all(side->to, &size, sizeof size);
  write_all(side->to, packed, size);
  free(packed);
}

static NNTI_buffer_t take_handle(struct side *side) {
  NNTI_buffer_t buffer;
  uint64_t size = 0;
  memset(&buffer, 0, sizeof buffer);
  read_all(side, &size, sizeof size);
  CHECK(size < 65536);
  char *packed = malloc(size);
  read_all(side, packed, size);
  CHECK(NNTI_dt_unpack(&side->transport, &buffer, packed, size) == NNTI_OK);
  free(packed);
  return buffer;
}

static NNTI_result_t finish(NNTI_work_request_t *wr, NNTI_status_t *status) {
  return NNTI_wait(wr, kWatchdogMs, status);
}

static void fill(char *bytes, size_t size, int seed) {
  for (size_t i = 0; i < size; ++i) bytes[i] = (char)(seed + (int)i * 3);
}

static int filled(const char *bytes, size_t size, int seed) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != (char)(seed + (int)i * 3)) return 0;
  return 1;
}

/* --- the queue: elements in turn, wrapping round ----------------------------------------------------------------------- */

static void queue_client(struct side *side) {
  NNTI_buffer_t message;
  NNTI_work_request_t wr;
  NNTI_status_t status;
  CHECK(NNTI_alloc(&side->transport, kElementSize, 1, NNTI_SEND_SRC, &message) == NNTI_OK);
  for (int i = 0; i < 3 * kElements; ++i) {
    fill(NNTI_BUFFER_C_POINTER(&message), kElementSize, i);
    CHECK(NNTI_send(&side->server, &message, i % 2 ? &side->queue : NULL, &wr) == NNTI_OK);
    CHECK(finish(&wr, &status) == NNTI_OK);
    CHECK(wr.result == NNTI_OK && status.result == NNTI_OK && status.length == kElementSize);
    CHECK(NNTI_wait(&wr, 0, &status) == NNTI_ENOENT);
    CHECK(NNTI_destroy_work_request(&wr) == NNTI_OK); /* it ended with its completion */
  }
  CHECK(NNTI_free(&message) == NNTI_OK);
}

static void queue_server(struct side *side) {
  for (int i = 0; i < 3 * kElements; ++i) {
    NNTI_work_request_t wr;
    NNTI_status_t status;
    CHECK(NNTI_create_work_request(&side->queue, &wr) == NNTI_OK);
    CHECK(finish(&wr, &status) == NNTI_OK);
    CHECK(status.offset == (uint64_t)(i % kElements) * kElementSize && status.start == side->queue.payload);
    CHECK(filled(NNTI_BUFFER_C_POINTER(&side->queue) + status.offset, status.length, i));
    CHECK(NNTI_destroy_work_request(&wr) == NNTI_OK);
  }
}

/* --- a full queue: what finds no room stays pending, and nothing is lost ------------------------------------------------ */

static void full_client(struct side *side) {
  enum { kMessages = 3 * kElements };
  NNTI_buffer_t messages[kMessages];
  NNTI_work_request_t wrs[kMessages];
  NNTI_status_t status;
  for (int i = 0; i < kMessages; ++i) {
    CHECK(NNTI_alloc(&side->transport, kElementSize, 1, NNTI_SEND_SRC, &messages[i]) == NNTI_OK);
    fill(NNTI_BUFFER_C_POINTER(&messages[i]), kElementSize, i);
    CHECK(NNTI_send(&side->server, &messages[i], &side->queue, &wrs[i]) == NNTI_OK);
  }
  for (int i = 0; i < kElements; ++i) CHECK(finish(&wrs[i], &status) == NNTI_OK);
  CHECK(NNTI_wait(&wrs[kElements], 50, &status) == NNTI_ETIMEDOUT);
  CHECK(status.result == NNTI_ETIMEDOUT);
  CHECK(NNTI_unregister_memory(&messages[kElements]) == NNTI_EAGAIN);
  tell(side);
  for (int i = kElements; i < kMessages; ++i) CHECK(finish(&wrs[i], &status) == NNTI_OK);
  for (int i = 0; i < kMessages; ++i) CHECK(NNTI_free(&messages[i]) == NNTI_OK);
}

static void full_server(struct side *side) {
  await(side);
  queue_server(side);
}

/* --- waiting for several, with NULL entries ------------------------------------------------------------------------------ */

static void several_client(struct side *side) {
  NNTI_buffer_t target = take_handle(side), local;
  NNTI_work_request_t one, two, *list[4] = {NULL, &one, NULL, &two};
  NNTI_status_t any, first, second, *statuses[4] = {NULL, &first, NULL, &second};
  uint32_t which = 99;
  CHECK(NNTI_alloc(&side->transport, 100, 1, (NNTI_buf_ops_t)(NNTI_PUT_SRC | NNTI_GET_DST), &local) == NNTI_OK);
  CHECK(NNTI_waitany(list, 1, 0, &which, &any) == NNTI_EINVAL && which == 99);
  CHECK(NNTI_put(&local, 0, 10, &target, 0, &one) == NNTI_OK);
  CHECK(NNTI_put(&local, 10, 20, &target, 50, &two) == NNTI_OK);
  CHECK(NNTI_waitall(list, 4, kWatchdogMs, statuses) == NNTI_OK);
  CHECK(first.length == 10 && second.length == 20 && second.offset == 10);
  CHECK(NNTI_get(&target, 50, 5, &local, 0, &two) == NNTI_OK);
  list[1] = NULL;
  CHECK(NNTI_waitany(list, 4, kWatchdogMs, &which, &any) == NNTI_OK && which == 3 && any.length == 5);
  CHECK(NNTI_waitany(list, 4, -2, &which, &any) == NNTI_EINVAL);
  CHECK(NNTI_dt_free(&side->transport, &target) == NNTI_OK);
  CHECK(NNTI_free(&local) == NNTI_OK);
  tell(side);
}

static void several_server(struct side *side) {
  static char memory[100];
  NNTI_buffer_t target;
  const NNTI_buf_ops_t ops = (NNTI_buf_ops_t)(NNTI_PUT_DST | NNTI_GET_SRC);
  CHECK(NNTI_register_memory(&side->transport, memory, sizeof memory, 1, ops, &target) == NNTI_OK);
  give_handle(side, &target);
  await(side);
  CHECK(NNTI_unregister_memory(&target) == NNTI_OK);
}

/* --- one buffer for everything ------------------------------------------------------------------------------------------- */

static void multi_use_client(struct side *side) {
  NNTI_buffer_t target = take_handle(side), local;
  NNTI_work_request_t wr;
  NNTI_status_t status;
  const NNTI_buf_ops_t ops = (NNTI_buf_ops_t)(NNTI_SEND_SRC | NNTI_PUT_SRC | NNTI_GET_DST);
  CHECK(NNTI_alloc(&side->transport, 512, 1, ops, &local) == NNTI_OK);
  fill(NNTI_BUFFER_C_POINTER(&local), 512, 1);
  CHECK(NNTI_put(&local, 0, 512, &target, 0, &wr) == NNTI_OK && finish(&wr, &status) == NNTI_OK);
  CHECK(NNTI_get(&target, 0, 256, &local, 256, &wr) == NNTI_OK && finish(&wr, &status) == NNTI_OK);
  CHECK(filled(NNTI_BUFFER_C_POINTER(&local) + 256, 256, 1));
  CHECK(NNTI_send(&side->server, &local, &target, &wr) == NNTI_OK && finish(&wr, &status) == NNTI_OK);
  CHECK(NNTI_dt_free(&side->transport, &target) == NNTI_OK);
  CHECK(NNTI_free(&local) == NNTI_OK);
}

static void multi_use_server(struct side *side) {
  NNTI_buffer_t target;
  NNTI_work_request_t wr;
  NNTI_status_t status;
  const NNTI_buf_ops_t ops = (NNTI_buf_ops_t)(NNTI_RECV_DST | NNTI_PUT_DST | NNTI_GET_SRC);
  CHECK(NNTI_alloc(&side->transport, 512, 1, ops, &target) == NNTI_OK);
  give_handle(side, &target);
  CHECK(NNTI_create_work_request(&target, &wr) == NNTI_OK);
  CHECK(finish(&wr, &status) == NNTI_OK && status.op == NNTI_BOP_REMOTE_WRITE && status.length == 512);
  CHECK(NNTI_clear_work_request(&wr) == NNTI_OK);
  CHECK(finish(&wr, &status) == NNTI_OK && status.op == NNTI_BOP_REMOTE_READ && status.length == 256);
  CHECK(NNTI_clear_work_request(&wr) == NNTI_OK);
  CHECK(finish(&wr, &status) == NNTI_OK && status.op == NNTI_RECV_DST);
  CHECK(filled(NNTI_BUFFER_C_POINTER(&target) + 256, 256, 1));
  CHECK(NNTI_destroy_work_request(&wr) == NNTI_OK);
  CHECK(NNTI_free(&target) == NNTI_OK);
}

/* --- segments, scatter, gather -------------------------------------------------------------------------------------------- */

static void segments_client(struct side *side) {
  NNTI_buffer_t one = take_handle(side), two = take_handle(side), local;
  const NNTI_buffer_t *both[2] = {&one, &two};
  static char memory[3][64];
  char *pieces[3] = {memory[2], memory[0], memory[1]};
  const uint64_t lengths[3] = {64, 10, 26};
  NNTI_work_request_t wr;
  NNTI_status_t status;
  fill(memory[2], 64, 5);
  fill(memory[0], 64, 6);
  const NNTI_buf_ops_t ops = (NNTI_buf_ops_t)(NNTI_PUT_SRC | NNTI_GET_DST);
  CHECK(NNTI_register_segments(&side->transport, pieces, lengths, 3, ops, &local) == NNTI_OK);
  CHECK(local.buffer_segments.NNTI_remote_addr_array_t_len == 3 && local.payload_size == 100);
  CHECK(NNTI_scatter(&local, 50, both, 2, &wr) == NNTI_OK && finish(&wr, &status) == NNTI_OK);
  memset(memory, 0, sizeof memory);
  CHECK(NNTI_gather(both, 50, 2, &local, &wr) == NNTI_OK && finish(&wr, &status) == NNTI_OK);
  CHECK(filled(memory[2], 64, 5) && filled(memory[0], 10, 6) && memory[0][10] == 0);
  CHECK(NNTI_dt_free(&side->transport, &one) == NNTI_OK && NNTI_dt_free(&side->transport, &two) == NNTI_OK);
  CHECK(NNTI_unregister_memory(&local) == NNTI_OK);
  tell(side);
}

static void segments_server(struct side *side) {
  static char memory[100];
  char *halves[2] = {memory + 50, memory};
  const uint64_t lengths[2] = {25, 25};
  NNTI_buffer_t whole, halved;
  const NNTI_buf_ops_t ops = (NNTI_buf_ops_t)(NNTI_PUT_DST | NNTI_GET_SRC);
  CHECK(NNTI_alloc(&side->transport, 50, 1, ops, &whole) == NNTI_OK);
  CHECK(NNTI_register_segments(&side->transport, halves, lengths, 2, ops, &halved) == NNTI_OK);
  give_handle(side, &whole);
  give_handle(side, &halved);
  await(side);
  CHECK(filled(NNTI_BUFFER_C_POINTER(&whole), 50, 5));
  CHECK(memory[50] == (char)(5 + 50 * 3));
  CHECK(NNTI_free(&whole) == NNTI_OK && NNTI_unregister_memory(&halved) == NNTI_OK);
}

/* --- atomic variables ------------------------------------------------------------------------------------------------------ */

static int changes;
static NNTI_result_t changed(const NNTI_transport_t *transport, const uint64_t variable, void *context) {
  changes += transport != NULL && variable == 3 && context == &changes;
  return NNTI_OK;
}

static void atomics_client(struct side *side) {
  NNTI_work_request_t wr;
  NNTI_status_t status;
  int64_t value = -1;
  await(side);
  for (int i = 0; i < 10; ++i) {
    CHECK(NNTI_atomic_fop(&side->transport, &side->server, 3, 4, 2, NNTI_ATOMIC_FADD, &wr) == NNTI_OK);
    CHECK(finish(&wr, &status) == NNTI_OK);
    CHECK(NNTI_atomic_read(&side->transport, 4, &value) == NNTI_OK && value == 2 * i);
  }
  CHECK(NNTI_atomic_cswap(&side->transport, &side->server, 3, 5, 20, -7, &wr) == NNTI_OK);
  CHECK(finish(&wr, &status) == NNTI_OK);
  CHECK(NNTI_atomic_read(&side->transport, 5, &value) == NNTI_OK && value == 20);
  CHECK(NNTI_atomic_read(&side->transport, 512, &value) == NNTI_EINVAL && value == 20);
  CHECK(NNTI_atomic_fop(&side->transport, &side->server, 9999, 4, 2, NNTI_ATOMIC_FADD, &wr) == NNTI_OK);
  CHECK(finish(&wr, &status) == NNTI_EINVAL);
  tell(side);
  await(side);
}

static void atomics_server(struct side *side) {
  int64_t value = 0;
  const double begin = trios_get_time();
  CHECK(NNTI_atomic_set_callback(&side->transport, 3, changed, &changes) == NNTI_OK);
  tell(side);
  await(side);
  CHECK(NNTI_atomic_read(&side->transport, 3, &value) == NNTI_OK && value == -7);
  while (changes < 11 && trios_get_time() < begin + kWatchdogMs / 1000) {
    NNTI_work_request_t wr;
    NNTI_status_t status;
    CHECK(NNTI_create_work_request(&side->spare, &wr) == NNTI_OK);
    CHECK(NNTI_wait(&wr, 1, &status) == NNTI_ETIMEDOUT && NNTI_destroy_work_request(&wr) == NNTI_OK);
  }
  CHECK(changes == 11);
  tell(side);
}

/* --- interrupting and cancelling -------------------------------------------------------------------------------------------- */

static void stopping_client(struct side *side) {
  NNTI_work_request_t wr, *list[2] = {NULL, &wr};
  NNTI_status_t status;
  CHECK(NNTI_create_work_request(&side->spare, &wr) == NNTI_OK);
  CHECK(NNTI_interrupt(&side->transport) == NNTI_OK);
  CHECK(NNTI_wait(&wr, kWatchdogMs, &status) == NNTI_EINTR);
  CHECK(NNTI_wait(&wr, 10, &status) == NNTI_ETIMEDOUT);
  CHECK(NNTI_cancelall(list, 2) == NNTI_OK);
  CHECK(NNTI_wait(&wr, kWatchdogMs, &status) == NNTI_ECANCELED && status.result == NNTI_ECANCELED);
  CHECK(NNTI_destroy_work_request(&wr) == NNTI_OK);
  CHECK(NNTI_wait(&wr, 0, &status) == NNTI_ENOENT);
  CHECK(NNTI_destroy_work_request(&wr) == NNTI_OK); /* nothing more to be done */
  tell(side);
}

static void stopping_server(struct side *side) { await(side); }

/* --- running them ------------------------------------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  void (*client)(struct side *), (*server)(struct side *);
} kScenarios[] = {{"queue", queue_client, queue_server},          {"full queue", full_client, full_server},
                  {"several", several_client, several_server},    {"multi-use", multi_use_client, multi_use_server},
                  {"segments", segments_client, segments_server}, {"atomics", atomics_client, atomics_server},
                  {"stopping", stopping_client, stopping_server}};

static void open_side(struct side *side, NNTI_transport_id_t id) {
  const NNTI_result_t result = NNTI_init(id, NULL, &side->transport);
  if (result == NNTI_ENOTSUP) {
    printf("skipped: %s\n", nnti_last_error());
    exit(kSkipped);
  }
  CHECK(result == NNTI_OK);
  CHECK(NNTI_alloc(&side->transport, 8, 1, NNTI_RECV_DST, &side->spare) == NNTI_OK);
}

static int run_server(NNTI_transport_id_t id, int to, int from) {
  struct side side = {.to = to, .from = from};
  char url[NNTI_URL_LEN] = "";
  role = "server";
  open_side(&side, id);
  CHECK(NNTI_alloc(&side.transport, kElementSize, kElements, NNTI_RECV_QUEUE, &side.queue) == NNTI_OK);
  CHECK(NNTI_get_url(&side.transport, url, sizeof url) == NNTI_OK);
  write_all(to, url, sizeof url);
  await(&side);
  give_handle(&side, &side.queue);
  for (size_t i = 0; i < sizeof kScenarios / sizeof *kScenarios; ++i) {
    kScenarios[i].server(&side);
    tell(&side);
    await(&side);
  }
  CHECK(NNTI_free(&side.queue) == NNTI_OK);
  CHECK(NNTI_fini(&side.transport) == NNTI_OK);
  CHECK(NNTI_fini(&side.transport) == NNTI_ENOTINIT);
  return 0;
}

static int run_client(NNTI_transport_id_t id, int to, int from) {
  struct side side = {.to = to, .from = from};
  char url[NNTI_URL_LEN];
  NNTI_transport_t again;
  role = "client";
  open_side(&side, id);
  CHECK(NNTI_init(id, NULL, &again) == NNTI_OK && again.me.peer.instance == side.transport.me.peer.instance);
  read_all(&side, url, sizeof url);
  CHECK(NNTI_connect(&side.transport, url, kWatchdogMs, &side.server) == NNTI_OK);
  tell(&side);
  side.queue = take_handle(&side);
  for (size_t i = 0; i < sizeof kScenarios / sizeof *kScenarios; ++i) {
    kScenarios[i].client(&side);
    await(&side);
    tell(&side);
    printf("%s: ok\n", kScenarios[i].name);
  }
  CHECK(NNTI_dt_free(&side.transport, &side.queue) == NNTI_OK);
  CHECK(NNTI_fini(&side.transport) == NNTI_OK);
  return 0;
}

int main(int argc, char **argv) {
  int down[2], up[2], status = 0;
  const NNTI_transport_id_t id = argc > 1 ? (NNTI_transport_id_t)atoi(argv[1]) : NNTI_DEFAULT_TRANSPORT;
  CHECK(pipe(down) == 0 && pipe(up) == 0);
  alarm(110);
  const pid_t child = fork();
  if (child == 0) {
    alarm(110);
    close(down[1]);
    close(up[0]);
    return run_server(id, up[1], down[0]);
  }
  close(down[0]);
  close(up[1]);
  signal(SIGPIPE, SIG_IGN);
  const int result = run_client(id, down[1], up[0]);
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return result;
}
