// SPDX-License-Identifier: BSD-3-Clause
#include "staging_figures.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

using nessie::Code;
using namespace std::chrono_literals;

StagingRun a_run(const std::string &output, std::chrono::milliseconds changed_after_output = -1000ms) {
  StagingRun run;
  run.program.output = output;
  run.program.cpu_s = 7;
  run.program.last_output = std::chrono::system_clock::now();
  run.last_change = run.program.last_output + changed_after_output;
  return run;
}

const std::string kWrote = "step 1\nresult bytes=4000000 io_s=0.5 run_s=2.0\n";
const std::string kRead = "result bytes=0 io_s=0 run_s=2.0 read_bytes=3000000 read_s=1.5\n";

TEST(NativeFigures, OfAProgramThatWritesHaveNoReading) {
  auto figures = native_figures(a_run(kWrote));
  ASSERT_TRUE(figures.ok());
  EXPECT_EQ(figures->at("bytes"), 4e6);
  EXPECT_EQ(figures->at("perceived_s"), 0.5);
  EXPECT_EQ(figures->at("perceived_MBps"), 8);
  EXPECT_EQ(figures->at("durable_s"), 2);
  EXPECT_EQ(figures->at("durable_MBps"), 2);
  EXPECT_EQ(figures->at("io_share"), 0.25);
  EXPECT_EQ(figures->at("cpu_s"), 7);
  EXPECT_FALSE(figures->contains("read_s"));
}

TEST(NativeFigures, OfAProgramThatReadsHaveNoWriting) {
  auto figures = native_figures(a_run(kRead));
  ASSERT_TRUE(figures.ok());
  EXPECT_EQ(figures->at("bytes"), 3e6);
  EXPECT_EQ(figures->at("read_MBps"), 2);
  EXPECT_FALSE(figures->contains("perceived_s"));
}

TEST(NativeFigures, AreDurableWhenTheFileWasChangedLastThoughTheProgramHadSaidItsResult) {
  auto figures = native_figures(a_run(kWrote, 500ms));
  ASSERT_TRUE(figures.ok());
  EXPECT_NEAR(figures->at("durable_s"), 2.5, 1e-6);
}

TEST(NativeFigures, NeedAResult) { EXPECT_EQ(native_figures(a_run("no such line\n")).code(), Code::kIo); }

TEST(StagedFigures, HaveTheServersMemory) {
  auto figures = staged_figures(a_run(kWrote), {{"bytes_staged", 4000000}, {"memory_high_bytes", 1000}});
  ASSERT_TRUE(figures.ok());
  EXPECT_EQ(figures->at("memory_bytes"), 1000);
}

TEST(StagedFigures, NeedEverythingToHaveBeenStaged) {
  EXPECT_EQ(staged_figures(a_run(kWrote), {{"bytes_staged", 3999999}}).code(), Code::kIo);
  EXPECT_EQ(staged_figures(a_run(kRead), {{"bytes_read", 2999999}}).code(), Code::kIo);
  auto native = staged_figures(a_run(kWrote), {{"bytes_staged", 4000000}, {"native", {"x.nc: its reason"}}});
  ASSERT_FALSE(native.ok());
  EXPECT_NE(native.error().message.find("x.nc: its reason"), std::string::npos);
}

}  // namespace
}  // namespace bench
