// SPDX-License-Identifier: BSD-3-Clause
// For tests: two coupled programs, core and edge, each of which reads what the other one writes. Their arrays have one
// to four dimensions and other shapes in each step; who reads cuts them otherwise than who writes (rows, columns,
// blocks, several boxes a rank), and some ranks of both have their elements in C order, others in Fortran order.
#pragma once

#include <nessie/result.hpp>

#include <cstdint>
#include <string>

namespace streams::testing {

/// How many ranks each of the two has, 1 to 8.
struct Coupling {
  int core = 1, edge = 1;
};
enum class Program { kCore, kEdge };

/// Writes all steps as one rank of a program, and reads those of the other one, over the servers at `at`, of which each
/// coupling is used once. Returns when the other program has closed: a checksum of all that was read, which does not
/// depend on where the servers are. kInternal: steps, shapes or elements are not those that were written; other errors
/// as those of Writer and Reader.
nessie::Result<std::uint32_t> couple(const Coupling &coupling, Program program, int rank, const std::string &at);

}  // namespace streams::testing
