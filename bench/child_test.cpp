// SPDX-License-Identifier: BSD-3-Clause
#include "child.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace bench {
namespace {

using nessie::Code;
constexpr auto kProgramLimit = std::chrono::seconds(60);

TEST(RunProgram, GivesWhatItWrote) {
  auto result = run_program({"sh", "-c", "echo $GREETING"}, kProgramLimit, {"GREETING=hello"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->output, "hello\n");
}

TEST(RunProgram, TellsTheCpuTimeOfAllItsProcessesAndWhenTheLastOutputCame) {
  const auto began = std::chrono::system_clock::now();
  auto result = run_program(
      {"sh", "-c", "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; echo done; sleep 0.2"}, kProgramLimit);
  ASSERT_TRUE(result.ok());
  EXPECT_GT(result->cpu_s, 0.005);
  EXPECT_GE(result->last_output, began);
  EXPECT_LE(result->last_output, std::chrono::system_clock::now() - std::chrono::milliseconds(150));
}

TEST(RunProgram, TellsHowAFailedOneEndedAndWhatItSaid) {
  auto result = run_program({"sh", "-c", "echo sorry >&2; exit 3"}, kProgramLimit);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.code(), Code::kIo);
  EXPECT_NE(result.error().message.find("exit code 3"), std::string::npos);
  EXPECT_NE(result.error().message.find("sorry"), std::string::npos);
}

TEST(RunProgram, DoesNotFindWhatIsNotThere) {
  EXPECT_EQ(run_program({"/nonexistent/program"}, kProgramLimit).code(), Code::kNotFound);
}

TEST(RunProgram, EndsOneThatTakesTooLong) {
  EXPECT_EQ(run_program({"sleep", "600"}, std::chrono::seconds(1)).code(), Code::kTimedOut);
}

TEST(Partner, ExchangesValuesAndIsGoneAfterwards) {
  pid_t pid = 0;
  {
    Partner partner([](int in, int out) {
      int value = 0;
      read_all(in, std::as_writable_bytes(std::span(&value, 1)));
      ++value;
      return write_all(out, std::as_bytes(std::span(&value, 1))) ? 0 : 1;
    });
    int value = 41;
    EXPECT_TRUE(partner.write_value(value));
    EXPECT_TRUE(partner.read_value(value));
    EXPECT_EQ(value, 42);
    pid = partner.pid();
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(Partner, ThatEndsEarlyIsNoticedByRead) {
  Partner partner([](int, int) { return 1; });
  char none;
  EXPECT_FALSE(partner.read_value(none));
}

}  // namespace
}  // namespace bench
