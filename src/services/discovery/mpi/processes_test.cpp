// SPDX-License-Identifier: BSD-3-Clause
// Under mpiexec, with two processes or more: every process runs all tests; any that fails ends with 1.
#include <services/discovery/mpi/mpi.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace nessie::service::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

Deadline soon() { return Deadline::in(seconds(60)); }

TEST(FindTogether, AllGetWhatOneFound) {
  const std::vector<Found> all = {{"shm://a;ofi://b:1", {{{7, 1}, 2}, {{8, 2}, 0}}, {{"rank", "0"}}, "a file"},
                                  {"ofi://c:1", {}, {}, "its URL"}};
  int calls = 0;
  const auto find = [&]() -> Result<std::vector<Found>> { return ++calls, all; };
  const auto found = find_together(MPI_COMM_WORLD, 1, find, soon());
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(*found, all);
  EXPECT_EQ(calls, rank() == 1 ? 1 : 0);
}

TEST(FindTogether, AllGetTheSameError) {
  const auto found = find_together(
      MPI_COMM_WORLD, 0,
      []() -> Result<std::vector<Found>> {
        return Error{Code::kPeerLost, "the contact file is stale", Scope::kService, 3};
      },
      soon());
  ASSERT_EQ(found.code(), Code::kPeerLost);
  EXPECT_EQ(found.error().message, "the contact file is stale");
  EXPECT_EQ(found.error().scope, Scope::kService);
  EXPECT_EQ(found.error().cause, 3);
}

/// What it leaves unfinished is kept for ever, with its communicator: see lsan.supp.
Code outcome_of_finding_without_the_others() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);  // not to be used again
  if (rank() != 1) return Code::kTimedOut;
  const auto nothing = []() -> Result<std::vector<Found>> { return std::vector<Found>(); };
  return find_together(comm, 0, nothing, Deadline::in(milliseconds(50))).code();
}

TEST(FindTogether, WithoutTheOthers_EndsAtTheDeadline) {
  EXPECT_EQ(outcome_of_finding_without_the_others(), Code::kTimedOut);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(FindTogether, AWrongRoot_IsRefused) {
  const auto nothing = []() -> Result<std::vector<Found>> { return std::vector<Found>(); };
  EXPECT_EQ(find_together(MPI_COMM_WORLD, 4711, nothing, soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(find_together(MPI_COMM_WORLD, -1, nothing, soon()).code(), Code::kInvalidArgument);
}

TEST(PublishedName, IsFoundByOthersOfTheJob_UntilItIsWithdrawn) {
  {
    std::optional<PublishedName> published;
    if (rank() == 0) {
      auto result = PublishedName::publish("nessie/test", "shm://a;ofi://b:1");
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      published.emplace(std::move(*result));
    }
    const auto found = find_published("nessie/test", soon(), sleep);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    EXPECT_EQ(found->url, "shm://a;ofi://b:1");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(find_published("nessie/test", Deadline::in(milliseconds(20)), sleep).code(), Code::kTimedOut);
}

TEST(PublishedName, ThatCannotBe_IsRefused) {
  EXPECT_EQ(PublishedName::publish("a b", "shm://a").code(), Code::kInvalidArgument);
  EXPECT_EQ(PublishedName::publish("a", "nowhere").code(), Code::kInvalidArgument);
  std::string urls = "shm://a";
  while (urls.size() < MPI_MAX_PORT_NAME) urls += ";shm://a";
  EXPECT_EQ(PublishedName::publish("a", urls).code(), Code::kTooLarge);
}

}  // namespace
}  // namespace nessie::service::mpi

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (nessie::service::mpi::find_published("a", nessie::Deadline::now(), nessie::service::sleep).code() !=
      nessie::Code::kUnsupported)
    return 1;  // MPI is not initialised yet
  MPI_Init(&argc, &argv);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
