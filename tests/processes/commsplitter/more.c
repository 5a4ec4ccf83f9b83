/* SPDX-License-Identifier: BSD-3-Clause */
/* As world.c: threads with communicators of their own, processes that are spawned and that connect, persistent and
 * partitioned communication, large counts, and sessions, as far as the MPI has them. */
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int rank, size;

static void print(const char *what, long value) {
  if (rank == 0) printf("%s: %ld\n", what, value);
}

static int sum_of(int mine, MPI_Comm comm) {
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
  return all;
}

/* --- threads -------------------------------------------------------------------------------------------------------------- */

enum { kThreads = 3, kTimes = 5 };

typedef struct {
  MPI_Comm comm;
  int sum;
} Part;

/* Makes communicators of its own all the time, and sends on the world beside the other threads. */
static void *work(void *argument) {
  Part *part = argument;
  const int tag = 100 + part->sum;
  for (int i = 0; i < kTimes; ++i) {
    MPI_Comm copied, half;
    int sent = rank, got = -1;
    MPI_Comm_dup(part->comm, &copied);
    MPI_Comm_split(part->comm, rank % 2, rank, &half);
    MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, tag, &got, 1, MPI_INT, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    part->sum += sum_of(got, copied) + sum_of(1, half);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copied);
  }
  return NULL;
}

static void see_threads(void) {
  pthread_t threads[kThreads];
  Part parts[kThreads];
  long sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    parts[i].sum = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &parts[i].comm);
  }
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, &parts[i]);
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    MPI_Comm_free(&parts[i].comm);
    sum += parts[i].sum;
  }
  print("by threads", sum);
}

/* --- other processes, which MPICH does not have over UCX --------------------------------------------------------------------- */

#if defined(OPEN_MPI)

static void see_spawned(char *self) {
  char *arguments[] = {"spawned", NULL};
  MPI_Comm children, all;
  int count = 0, both = 0;
  MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  MPI_Comm_remote_size(children, &count);
  print("processes that were spawned", count);
  MPI_Intercomm_merge(children, 0, &all);
  MPI_Comm_size(all, &both);
  print("together", both);
  print("their sum", sum_of(rank, all));
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&children);
}

static void be_spawned(void) {
  MPI_Comm parent, all;
  MPI_Comm_get_parent(&parent);
  MPI_Intercomm_merge(parent, 1, &all);
  sum_of(100 * size + sum_of(1, MPI_COMM_WORLD), all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&parent);
}

static void see_connected(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm half, other;
  int remote = 0;
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half);
  if (rank == 0)
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other);
  else
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other);
  MPI_Comm_remote_size(other, &remote);
  print("processes that connected", remote);
  MPI_Comm_disconnect(&other);
  MPI_Comm_free(&half);
  if (rank == 0) MPI_Close_port(port);
}

#else

static void see_spawned(char *self) { (void)self; }
static void be_spawned(void) {}
static void see_connected(void) {}

#endif

/* --- what not every MPI has ------------------------------------------------------------------------------------------------- */

#if MPI_VERSION >= 4

static void see_partitioned(void) {
  int sent[4] = {rank, rank, rank, rank}, got[4] = {0};
  MPI_Request requests[2];
  MPI_Psend_init(sent, 4, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(got, 4, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Startall(2, requests);
  for (int i = 0; i < 4; ++i) MPI_Pready(i, requests[0]);
  for (int i = 0; i < 2; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  print("in partitions", got[0] + got[1] + got[2] + got[3]);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void see_large_counts(void) {
  const MPI_Count one = 1;
  int all = 0, got = -1, each[64] = {0};
  MPI_Request request;
  MPI_Allreduce_c(&rank, &all, one, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Isend_c(&rank, one, MPI_INT, (rank + 1) % size, 8, MPI_COMM_WORLD, &request);
  MPI_Recv_c(&got, one, MPI_INT, (rank + size - 1) % size, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allgather_c(&rank, one, MPI_INT, each, one, MPI_INT, MPI_COMM_WORLD);
  print("with large counts", all + 10 * got + 100 * each[size - 1]);
}

#define HAVE_PERSISTENT_REDUCTION

/* Of a communicator that is made from a set of processes. */
static int processes_of(MPI_Session session, const char *name) {
  MPI_Group group;
  MPI_Comm comm;
  int count = 0;
  MPI_Group_from_session_pset(session, name, &group);
  MPI_Comm_create_from_group(group, "more", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  count = sum_of(1, comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  return count;
}

static void run_in_session(void) {
  MPI_Session session, second;
  MPI_Info info;
  char text[16] = "";
  int flag = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second);
  const int self = processes_of(session, "mpi://SELF"), world = processes_of(session, "mpi://WORLD");
  print("processes", world);
  print("of itself", self);
  print("again", processes_of(second, "mpi://world"));
  MPI_Session_get_pset_info(second, "mpi://WORLD", &info);
  MPI_Info_get(info, "mpi_size", sizeof text - 1, text, &flag);
  MPI_Info_free(&info);
  if (rank == 0) printf("it says: %s\n", text);
  MPI_Session_finalize(&second);
  MPI_Initialized(&flag);
  print("by MPI_Init", flag);
  MPI_Session_finalize(&session);
  MPI_Finalized(&flag);
  print("by MPI_Finalize", flag);
}

#else

static void see_partitioned(void) {}
static void see_large_counts(void) {}
static void run_in_session(void) {}

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) /* by the name that it had before MPI 4.0 */
#define HAVE_PERSISTENT_REDUCTION
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

#endif

static void see_persistent_collective(void) {
#if defined(HAVE_PERSISTENT_REDUCTION)
  int all = 0;
  MPI_Request request;
  MPI_Allreduce_init(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  print("by a persistent reduction", all);
#endif
}

int main(int argc, char **argv) {
  int provided = 0;
  if (argc > 1 && strcmp(argv[1], "session") == 0) return run_in_session(), 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "spawned") == 0) {
    be_spawned();
  } else {
    print("processes", size);
    if (provided == MPI_THREAD_MULTIPLE) see_threads();
    see_partitioned();
    see_large_counts();
    see_persistent_collective();
    see_connected();
    see_spawned(argv[0]);
  }
  MPI_Finalize();
  return 0;
}
