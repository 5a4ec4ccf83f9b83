/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can see of MPI_COMM_WORLD, one fact a line: the same alone and as one of several programs of a job. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static const char *named(MPI_Comm comm) { return comm == MPI_COMM_WORLD ? "world" : "another"; }

static void print(const char *what, long value) {
  if (rank == 0) printf("%s: %ld\n", what, value);
}

static void print_name(const char *what, const char *name) {
  if (rank == 0) printf("%s: %s\n", what, name);
}

/* --- callbacks ---------------------------------------------------------------------------------------------------------- */

static int copy(MPI_Comm comm, int keyval, void *state, void *value, void *copied, int *flag) {
  (void)keyval;
  print_name("an attribute is copied from", named(comm));
  print("with the state", *(int *)state);
  memcpy(copied, &value, sizeof value);
  *flag = 1;
  return MPI_SUCCESS;
}

static int removed(MPI_Comm comm, int keyval, void *value, void *state) {
  (void)keyval, (void)value, (void)state;
  print_name("an attribute is removed from", named(comm));
  return MPI_SUCCESS;
}

static int communicate(MPI_Comm comm, int keyval, void *value, void *state) {
  (void)comm, (void)keyval, (void)value, (void)state;
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  print("processes at the end", all);
  return MPI_SUCCESS;
}

static void hear(MPI_Comm *comm, int *code, ...) {
  int class = 0;
  MPI_Error_class(*code, &class);
  print_name("an error on", named(*comm));
  print("of class", class == MPI_ERR_RANK ? 1 : class == MPI_ERR_TYPE ? 2 : 3);
}

static void see_attributes(void) {
  static int state = 42, value = 7;
  int key = 0, *found = NULL, flag = 0;
  MPI_Comm copied;
  MPI_Comm_create_keyval(copy, removed, &key, &state);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
  MPI_Comm_get_attr(MPI_COMM_WORLD, key, (void *)&found, &flag);
  print("the attribute", flag ? *found : -1);
  MPI_Comm_dup(MPI_COMM_WORLD, &copied);
  MPI_Comm_free(&copied);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, (void *)&found, &flag);
  print("the number of the program", flag ? *found : -1);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&found, &flag);
  print("the largest tag", flag ? *found : -1);
}

static void see_errors(void) {
  MPI_Errhandler handler, got;
  int value = 0;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
  print("the handler is the one that was set", got == handler);
  MPI_Errhandler_free(&handler);
  MPI_Errhandler_free(&got);
  MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  MPI_Type_size(MPI_DATATYPE_NULL, &value);
  MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
  MPI_Comm world = MPI_COMM_WORLD;
  print("it can be freed", MPI_Comm_free(&world) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* --- communication ------------------------------------------------------------------------------------------------------ */

static int sum(void) {
  int mine = rank + 1, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static int around(void) {
  int sent = rank, got = -1;
  MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, 3, &got, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return got;
}

static int by_any_source(void) {
  int all = 0, value = 1;
  MPI_Request request;
  MPI_Isend(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
  for (int i = 0; i < size && rank == 0; ++i) {
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    all += value;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return all;
}

static int by_persistent_request(void) {
  int sent = rank, got = -1;
  MPI_Request requests[2];
  MPI_Send_init(&sent, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&got, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  return got;
}

static int by_window(void) {
  int *memory = NULL, mine = rank;
  MPI_Win window;
  MPI_Alloc_mem(4096, MPI_INFO_NULL, (void *)&memory); /* MPICH 4.0 mixes up small windows that it allocates itself */
  MPI_Win_create(memory, 4096, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  const int got = *memory;
  MPI_Win_free(&window);
  MPI_Free_mem(memory);
  return got;
}

static long by_file(const char *name) {
  MPI_File file;
  MPI_Offset bytes = 0;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, (MPI_Offset)(rank * sizeof rank), &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_get_size(file, &bytes);
  MPI_File_close(&file);
  if (rank == 0) MPI_File_delete(name, MPI_INFO_NULL);
  return bytes;
}

static int by_neighbours(void) {
  int period = 1, got[2] = {0, 0};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 0, &ring);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, ring);
  MPI_Comm_free(&ring);
  return got[0] + got[1];
}

static void see_communication(const char *file) {
  print("the sum of ranks", sum());
  print("around the ring", around());
  print("from any source", by_any_source());
  print("by persistent requests", by_persistent_request());
  print("by a window", by_window());
  print("by a file", by_file(file));
  print("by neighbours", by_neighbours());
}

/* --- communicators and groups --------------------------------------------------------------------------------------------- */

static int compared(MPI_Comm a, MPI_Comm b) {
  int result = 0;
  MPI_Comm_compare(a, b, &result);
  return result == MPI_IDENT ? 1 : result == MPI_CONGRUENT ? 2 : 3;
}

static void see_communicators(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0, count = 0, half_size = 0;
  MPI_Comm copied, half, parent;
  MPI_Group group;
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  print_name("the name", name);
  MPI_Comm_dup(MPI_COMM_WORLD, &copied);
  print("with itself", compared(MPI_COMM_WORLD, MPI_COMM_WORLD));
  print("with its copy", compared(copied, MPI_COMM_WORLD));
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_size(group, &count);
  print("processes in its group", count);
  MPI_Group_free(&group);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_size(half, &half_size);
  print("every other process", half_size);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copied);
  MPI_Comm_get_parent(&parent);
  print("it was spawned", parent != MPI_COMM_NULL);
  print("through Fortran's number", MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  print("processes", size);
  see_communicators();
  see_communication(argc > 1 ? argv[1] : "world.bin");
  see_attributes();
  see_errors();
  int key = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, communicate, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Finalize();
  return 0;
}
