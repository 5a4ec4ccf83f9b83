// SPDX-License-Identifier: BSD-3-Clause
// One rank of a coupled program, for tests in which each is a process. Of each line of its input, "3 5" (the ranks of
// core, and of edge), it takes its part in that coupling and says how it went: "3 5: 1a2b3c4d", the checksum of all
// that it has read.
//
//     streams_coupling_rank core|edge RANK
#include <services/streams/testing/coupling.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

int main(int argc, char **argv) {
  using namespace streams::testing;
  if (argc != 3) return EXIT_FAILURE;
  const auto program = std::string_view(argv[1]) == "core" ? Program::kCore : Program::kEdge;
  const int rank = std::atoi(argv[2]);
  for (Coupling coupling; std::cin >> coupling.core >> coupling.edge;) {
    const auto read = couple(coupling, program, rank, {});
    std::cout << fmt::format("{} {}: {}", coupling.core, coupling.edge,
                             read.ok() ? fmt::format("{:08x}", *read) : read.error().to_string())
              << std::endl;
  }
  return EXIT_SUCCESS;
}
