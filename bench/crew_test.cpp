// SPDX-License-Identifier: BSD-3-Clause
#include "crew.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Status;
constexpr auto kLimit = std::chrono::seconds(60);

class Crew : public testing::TestWithParam<Housing> {};

TEST_P(Crew, LeavesItsFiguresOnTheBoard) {
  Board board(3);
  auto status = run_crew(board, 3, GetParam(), kLimit, [](Board &shared, int member) -> Status {
    shared.lane(member).values[5] = 10.0 * member;
    shared.lane(member).tally = {100.0 + member, 108.0 + member, 5};
    return {};
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(median_value(board, 3, 5), 10);
  EXPECT_EQ(calls_per_s(board, 3), 1.5) << "15 calls, between 100 and 110 s";
}

TEST_P(Crew, FindsAddressesAndMeets) {
  Board board(2);
  auto status = run_crew(board, 2, GetParam(), kLimit, [](Board &shared, int member) -> Status {
    shared.publish_address(member, member == 0 ? "zero" : std::string_view("o\0e", 3));
    auto other = shared.address_of(1 - member);
    bool right = other == (member == 0 ? std::string("o\0e", 3) : "zero");
    if (right && shared.meet(2, 1) && shared.meet(2, 2)) return {};
    return Error{Code::kInternal, "not found"};
  });
  EXPECT_TRUE(status.ok());
}

TEST_P(Crew, IsStoppedByTheErrorOfOne) {
  Board board(2);
  auto status = run_crew(board, 2, GetParam(), kLimit, [](Board &shared, int member) -> Status {
    if (member == 1) return Error{Code::kIo, "the second one failed"};
    if (shared.meet(2, 1)) return Error{Code::kInternal, "met somebody who did not come"};
    return {};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "the second one failed");
}

INSTANTIATE_TEST_SUITE_P(Housed, Crew, testing::Values(Housing::kProcesses, Housing::kThreads),
                         [](const auto &info) { return info.param == Housing::kProcesses ? "Processes" : "Threads"; });

TEST(CrewOfProcesses, IsStoppedByADeath) {
  Board board(2);
  auto status = run_crew(board, 2, Housing::kProcesses, kLimit, [](Board &shared, int member) -> Status {
    if (member == 0) raise(SIGKILL);
    return shared.address_of(0).empty() ? Status{} : Status(Error{Code::kInternal, "it left an address"});
  });
  EXPECT_EQ(status.code(), Code::kPeerLost);
}

TEST(CrewOfProcesses, IsEndedWhenItTakesTooLong) {
  Board board(1);
  auto status = run_crew(board, 1, Housing::kProcesses, std::chrono::seconds(0), [](Board &, int) -> Status {
    for (;;) pause();
  });
  EXPECT_EQ(status.code(), Code::kTimedOut);
}

}  // namespace
}  // namespace bench
