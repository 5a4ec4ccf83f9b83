// SPDX-License-Identifier: BSD-3-Clause
// Coupled programs whose ranks are threads of this process; tests/streams/coupling_test.py has them in processes.
#include <services/streams/testing.hpp>
#include <services/streams/testing/coupling.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace streams::testing {
namespace {

std::vector<Coupling> couplings() {
  if (std::getenv("NESSIE_TEST_SWEEP") == nullptr) return {{1, 1}, {8, 8}, {3, 5}, {8, 1}, {1, 8}};
  std::vector<Coupling> all;
  for (int core = 1; core <= 8; ++core)
    for (int edge = 1; edge <= 8; ++edge) all.push_back({core, edge});
  return all;
}

class Couplings : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Couplings, EachProgramReadsWhatTheOtherWrites) {
  const Servers servers(GetParam());
  for (const auto &coupling : couplings()) {
    std::vector<std::thread> ranks;
    const auto start = [&](Program program, int count) {
      for (int rank = 0; rank < count; ++rank)
        ranks.emplace_back([&, program, rank] {
          const auto read = couple(coupling, program, rank, servers.at());
          EXPECT_TRUE(read.ok()) << coupling.core << "x" << coupling.edge << ": " << read.error().to_string();
        });
    };
    start(Program::kCore, coupling.core);
    start(Program::kEdge, coupling.edge);
    for (auto &rank : ranks) rank.join();
  }
}

INSTANTIATE_TEST_SUITE_P(OverServers, Couplings, ::testing::Values(1u, 2u, 4u));

}  // namespace
}  // namespace streams::testing
