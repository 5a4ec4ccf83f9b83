// SPDX-License-Identifier: BSD-3-Clause
// Ends in the way that its argument names: where files are closed, and MPI is finalized, late or not at all.
#include "setups.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

std::string way;

bool is(const char *name) { return way == name; }

struct Mpi {
  ~Mpi() {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized != 0 && finalized == 0) MPI_Finalize();
  }
};

struct Output {
  int ncid = -1;
  void open(const char *path) {
    int dims[2], var = 0;
    CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
    CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    CHECK(ncmpi_def_dim(ncid, "x", 5000 * size, &dims[1]));
    CHECK(ncmpi_def_var(ncid, "v", NC_DOUBLE, 2, dims, &var));
    CHECK(ncmpi_enddef(ncid));
  }
  void put(int t) const {
    const MPI_Offset start[2] = {t, 5000 * rank}, count[2] = {1, 5000};
    const std::vector<double> data(5000, t + 0.5 * rank);
    CHECK(ncmpi_put_vara_double_all(ncid, 0, start, count, data.data()));
  }
  void close() {
    if (ncid < 0) return;
    put(3);
    CHECK(ncmpi_close(ncid));
    ncid = -1;
    if (rank == 0) std::puts("closed");
    std::fflush(stdout);
  }
  ~Output() { close(); }
};

Mpi mpi;        // destroyed last
Output output;  // destroyed before

/// What a library does that has something to write when MPI is finalized.
int write_last_file(MPI_Comm, int, void *, void *) {
  output.open("last.nc");
  output.close();
  return MPI_SUCCESS;
}

void at_finalize(MPI_Comm_delete_attr_function *work) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, work, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

void fork_and_wait(void (*end)(int)) {
  const pid_t child = fork();
  if (child == 0) end(0);
  int status = 0;
  waitpid(child, &status, 0);
}

}  // namespace

int main(int argc, char **argv) {
  way = argc > 1 ? argv[1] : "static";
  if (is("atexit-before")) std::atexit([] { output.close(); });
  if (is("late-init")) std::printf("%s\n", ncmpi_strerrno(NC_EBADID)), std::fflush(stdout);
  begin(&argc, &argv);
  if (is("in-finalize")) at_finalize(write_last_file);
  output.open("out.nc");
  if (is("atexit-after")) std::atexit([] { output.close(); });
  for (int t = 0; t < 3; t++) output.put(t);
  if (is("fork-exit")) fork_and_wait([](int) { output.ncid = -1, _exit(0); });
  if (is("fork-exec")) fork_and_wait([](int) { execlp("true", "true", static_cast<char *>(nullptr)), _exit(9); });
  if (is("system") && std::system("true") != 0) return 9;
  if (is("static") || is("atexit-before") || is("atexit-after") || is("late-init") || is("fork-exit") ||
      is("fork-exec") || is("system"))
    return 0;
  output.close();
  if (is("open-at-end")) output.open("second.nc"), output.put(0), output.ncid = -1;
  MPI_Finalize();
  if (is("_exit")) _exit(5);
  if (is("quick_exit")) std::quick_exit(6);
  return 0;
}
