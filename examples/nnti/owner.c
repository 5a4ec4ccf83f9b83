/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory that another process reads and writes. visitor.c has the commands. */
#include <nnti/nnti.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless all went well. */
static void demand(NNTI_result_t result) {
  if (result == NNTI_OK) return;
  fprintf(stderr, "%s\n", nnti_last_error());
  exit(1);
}

int main(void) {
  static char board[64] = "hello from the owner";
  NNTI_transport_t transport;
  NNTI_buffer_t memory, inbox, answer, visitor;
  NNTI_status_t status;
  demand(NNTI_init(NNTI_DEFAULT_TRANSPORT, NULL, &transport));
  demand(NNTI_register_memory(&transport, board, sizeof board, 1, NNTI_GET_SRC | NNTI_PUT_DST, NULL, &memory));
  demand(NNTI_alloc(&transport, sizeof(NNTI_buffer_t), 4, NNTI_RECV_QUEUE, NULL, &inbox));
  printf("%s\n", transport.me.url);
  fflush(stdout);

  /* The first message says where the visitor wants the answer: how to reach the board. */
  demand(NNTI_wait(&inbox, NNTI_RECV_QUEUE, -1, &status));
  visitor = *(NNTI_buffer_t *)(uintptr_t)(status.start + status.offset);
  demand(NNTI_register_memory(&transport, (char *)&memory, sizeof memory, 1, NNTI_SEND_SRC, NULL, &answer));
  demand(NNTI_send(&status.src, &answer, &visitor));
  demand(NNTI_wait(&answer, NNTI_SEND_SRC, -1, &status));

  /* The second one says that the visitor has written: all that it put before can be read here. */
  demand(NNTI_wait(&inbox, NNTI_RECV_QUEUE, -1, &status));
  printf("the visitor wrote: %s\n", board);
  demand(NNTI_fini(&transport));
  return 0;
}
