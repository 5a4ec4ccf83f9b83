/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of MPI in Trios' handles: each process finds its own, and its neighbour's, in what NNTI_init and NNTI_connect
 * give. For mpiexec. */
#include <Trios_nnti.h>

#include <mpi.h>
#include <stdio.h>

static int failures = 0;

static void expect_rank(const char *whose, const NNTI_peer_t *peer, int rank) {
  const int found = peer->peer.NNTI_remote_process_t_u.mpi.rank;
  if (found == rank) return;
  fprintf(stderr, "%s: %s has rank %d, not %d\n", whose, peer->url, found, rank);
  ++failures;
}

static void expect_ok(const char *what, NNTI_result_t result) {
  if (result == NNTI_OK) return;
  fprintf(stderr, "%s: %d: %s\n", what, (int)result, nnti_last_error());
  ++failures;
}

int main(int argc, char **argv) {
  int rank = 0, size = 0, is_over = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  NNTI_transport_t transport;
  NNTI_peer_t left;
  char mine[NNTI_URL_LEN] = "", lefts[NNTI_URL_LEN];
  expect_ok("NNTI_init", NNTI_init(NNTI_TRANSPORT_MPI, NULL, &transport));
  expect_ok("NNTI_get_url", NNTI_get_url(&transport, mine, sizeof mine));
  const int left_rank = (rank + size - 1) % size;
  MPI_Sendrecv(mine, sizeof mine, MPI_CHAR, (rank + 1) % size, 0, lefts, sizeof lefts, MPI_CHAR, left_rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect_rank("my own", &transport.me, rank);
  expect_ok("NNTI_connect", NNTI_connect(&transport, lefts, 60000, &left));
  expect_rank("my neighbour's", &left, left_rank);

  /* Whoever is connected to goes on taking part until all are. */
  NNTI_buffer_t queue;
  NNTI_work_request_t wr;
  NNTI_status_t status;
  MPI_Request barrier;
  expect_ok("NNTI_alloc", NNTI_alloc(&transport, 8, 1, NNTI_RECV_QUEUE, &queue));
  expect_ok("NNTI_create_work_request", NNTI_create_work_request(&queue, &wr));
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  while (!is_over) {
    (void)NNTI_wait(&wr, 1, &status);
    MPI_Test(&barrier, &is_over, MPI_STATUS_IGNORE);
  }
  NNTI_fini(&transport);
  MPI_Finalize();
  return failures != 0;
}
