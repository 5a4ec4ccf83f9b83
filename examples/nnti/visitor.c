/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes memory of another process, which does nothing for it.
 *
 *   $ build/nnti_owner_c > owner.out &
 *   $ until [ -s owner.out ]; do sleep 0.1; done
 *   $ build/nnti_visitor_c "$(cat owner.out)"
 *   the owner wrote: hello from the owner
 *   $ wait; tail -n 1 owner.out; rm owner.out
 *   the visitor wrote: hello from the visitor
 */
#include <nnti/nnti.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless all went well. */
static void demand(NNTI_result_t result) {
  if (result == NNTI_OK) return;
  fprintf(stderr, "%s\n", nnti_last_error());
  exit(1);
}

int main(int argc, char **argv) {
  static char text[64] = "hello from the visitor", found[64];
  NNTI_transport_t transport;
  NNTI_peer_t owner;
  NNTI_buffer_t memory, place, question, source, destination;
  NNTI_status_t status;
  if (argc != 2) return fprintf(stderr, "usage: visitor URL\n"), 2;
  demand(NNTI_init(NNTI_DEFAULT_TRANSPORT, NULL, &transport));
  demand(NNTI_connect(&transport, argv[1], 10000, &owner));

  /* A message: where we want to be told how to reach the owner's memory. */
  demand(NNTI_register_memory(&transport, (char *)&memory, sizeof memory, 1, NNTI_RECV_DST, NULL, &place));
  demand(NNTI_register_memory(&transport, (char *)&place, sizeof place, 1, NNTI_SEND_SRC, NULL, &question));
  demand(NNTI_send(&owner, &question, NULL));
  demand(NNTI_wait(&question, NNTI_SEND_SRC, 10000, &status));
  demand(NNTI_wait(&place, NNTI_RECV_DST, 10000, &status));

  /* Get, then put. Each is over when its completion was taken. */
  demand(NNTI_register_memory(&transport, found, sizeof found, 1, NNTI_GET_DST, NULL, &destination));
  demand(NNTI_get(&memory, 0, sizeof found, &destination, 0));
  demand(NNTI_wait(&destination, NNTI_GET_DST, 10000, &status));
  printf("the owner wrote: %s\n", found);
  demand(NNTI_register_memory(&transport, text, sizeof text, 1, NNTI_PUT_SRC, NULL, &source));
  demand(NNTI_put(&source, 0, sizeof text, &memory, 0));
  demand(NNTI_wait(&source, NNTI_PUT_SRC, 10000, &status));

  /* Another message: a put makes no event at the owner. */
  demand(NNTI_send(&owner, &question, NULL));
  demand(NNTI_wait(&question, NNTI_SEND_SRC, 10000, &status));
  demand(NNTI_fini(&transport));
  return 0;
}
