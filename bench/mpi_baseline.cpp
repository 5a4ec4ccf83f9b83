// SPDX-License-Identifier: BSD-3-Clause
// nessie-bench-mpi: what MPI itself takes between two processes; the baseline of rpc-latency and bulk-bandwidth.
// Run by nessie-bench, as `mpiexec -n 2 nessie-bench-mpi round-trip|transfer SIZE…`. Rank 0 prints "SIZE MICROSECONDS"
// for each size: of a message there and one of the same size back, or an empty one back.
#include "timing.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

struct Exchange {
  std::vector<char> buffer;
  int size = 0, back = 0;

  void as_first() {
    MPI_Send(buffer.data(), size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer.data(), back, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void as_second() {
    MPI_Recv(buffer.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer.data(), back, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
};

double measure(int rank, bool round_trip, int size) {
  Exchange exchange{std::vector<char>(static_cast<std::size_t>(size), 'x'), size, round_trip ? size : 0};
  int calls = round_trip ? 1000 : bench::transfers_per_batch(static_cast<std::uint64_t>(size));
  MPI_Barrier(MPI_COMM_WORLD);
  return bench::typical_us(calls, [&] { rank == 0 ? exchange.as_first() : exchange.as_second(); });
}

}  // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3 || size != 2) {
    std::fprintf(stderr, "usage: mpiexec -n 2 nessie-bench-mpi round-trip|transfer SIZE...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bool round_trip = std::string_view(argv[1]) == "round-trip";
  for (int i = 2; i < argc; ++i) {
    int bytes = std::max(1, std::atoi(argv[i]));
    double us = measure(rank, round_trip, bytes);
    if (rank == 0) std::printf("%d %.9f\n", bytes, us);
  }
  MPI_Finalize();
  return 0;
}
