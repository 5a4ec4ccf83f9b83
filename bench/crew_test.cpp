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
  auto board = run_crew(3, GetParam(), kLimit, [](Board &shared, int member) -> Status {
    shared.lane(member).us = 10.0 * member;
    shared.lane(member).leave("put", 8, member + 0.5);
    shared.lane(member).tally = {100.0 + member, 108.0 + member, 5};
    return {};
  });
  ASSERT_TRUE(board.ok());
  EXPECT_EQ(median_us(**board, 3), 10);
  ASSERT_EQ((*board)->lane(2).figures().size(), 1u);
  EXPECT_STREQ((*board)->lane(2).figures()[0].mode.data(), "put");
  EXPECT_EQ((*board)->lane(2).figures()[0].value, 2.5);
  EXPECT_EQ(calls_per_s(**board, 3), 1.5) << "15 calls, between 100 and 110 s";
}

TEST_P(Crew, FindsAddressesAndMeets) {
  auto board = run_crew(2, GetParam(), kLimit, [](Board &shared, int member) -> Status {
    shared.publish_address(member, member == 0 ? "zero" : std::string_view("o\0e", 3));
    auto other = shared.address_of(1 - member);
    bool right = other == (member == 0 ? std::string("o\0e", 3) : "zero");
    if (right && shared.meet(2, 1) && shared.meet(2, 2)) return {};
    return Error{Code::kInternal, "not found"};
  });
  EXPECT_TRUE(board.ok());
}

TEST_P(Crew, IsStoppedByTheErrorOfOne) {
  auto board = run_crew(2, GetParam(), kLimit, [](Board &shared, int member) -> Status {
    if (member == 1) return Error{Code::kIo, "the second one failed"};
    if (shared.meet(2, 1)) return Error{Code::kInternal, "met somebody who did not come"};
    return {};
  });
  ASSERT_FALSE(board.ok());
  EXPECT_EQ(board.error().message, "the second one failed");
}

INSTANTIATE_TEST_SUITE_P(Housed, Crew, testing::Values(Housing::kProcesses, Housing::kThreads),
                         [](const auto &info) { return info.param == Housing::kProcesses ? "Processes" : "Threads"; });

TEST(CrewOfProcesses, IsStoppedByADeath) {
  auto board = run_crew(2, Housing::kProcesses, kLimit, [](Board &shared, int member) -> Status {
    if (member == 0) raise(SIGKILL);
    return shared.address_of(0).empty() ? Status{} : Status(Error{Code::kInternal, "it left an address"});
  });
  EXPECT_EQ(board.code(), Code::kPeerLost);
}

TEST(CrewOfProcesses, IsEndedWhenItTakesTooLong) {
  auto board = run_crew(1, Housing::kProcesses, std::chrono::seconds(0), [](Board &, int) -> Status {
    for (;;) pause();
  });
  EXPECT_EQ(board.code(), Code::kTimedOut);
}

}  // namespace
}  // namespace bench
