// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/sinks.hpp"

#include "services/streams/sinks/step_file.hpp"
#include "services/streams/testing.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace nessie::streams::sinks {
namespace {

class ServersSinks : public ::testing::Test {
 protected:
  ServersSinks() {
    char name[] = "/tmp/nessie-sinks-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ServersSinks() override { std::filesystem::remove_all(folder_); }

  void write(const std::string &stream, std::uint64_t steps) { write(server_, stream, steps); }
  static void write(const ::streams::testing::ServerThread &server, const std::string &stream, std::uint64_t steps) {
    WriterOptions options;
    options.at = server.at();
    auto writer = *Writer::open(stream, options, ::streams::testing::soon());
    ASSERT_TRUE(writer.define({"t", Type::kDouble, {}, {}, false}).ok());
    for (std::uint64_t step = 0; step < steps; ++step) {
      const auto value = static_cast<double>(step);
      ASSERT_TRUE(writer.begin_step(::streams::testing::soon()).ok());
      ASSERT_TRUE(writer.put("t", {}, &value).ok());
      ASSERT_TRUE(writer.end_step(::streams::testing::soon()).ok());
    }
    ASSERT_TRUE(writer.close(::streams::testing::soon()).ok());
  }
  /// Waits until the file has so many.
  bool has_steps(const std::string &name, std::size_t steps) {
    for (const auto deadline = ::streams::testing::soon(); !deadline.passed(); std::this_thread::yield()) {
      auto netcdf = NetcdfFile::open(folder_ + name, false);
      if (!netcdf.ok()) continue;
      const auto file = StepFile::open(*std::move(netcdf));
      if (file.ok() && file->numbers().size() == steps) return true;
    }
    return false;
  }

  std::string folder_;
  ::streams::testing::ServerThread server_;
};

TEST(SinkRules, AreReadAsTheyAreWritten) {
  const auto rules = parse_rules("record:flow=/scratch/flow.nc\n forward:edge-*=tcp://node7:4711");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ((*rules)[0], (Rule{Rule::Kind::kRecord, "flow", "/scratch/flow.nc"}));
  EXPECT_EQ((*rules)[1], (Rule{Rule::Kind::kForward, "edge-*", "tcp://node7:4711"}));
  EXPECT_TRUE(parse_rules("")->empty());
  EXPECT_EQ((*rules)[1].subscription(), "forward:edge-*=tcp://node7:4711");
  const Rule one{Rule::Kind::kRecord, "flow", std::string(300, 'x')}, other{Rule::Kind::kRecord, "flux", one.target};
  EXPECT_NE(one.subscription(), other.subscription());
  EXPECT_EQ(one.subscription().size(), 23u);
  for (const char *wrong : {"record", "record:flow", "record:=x", "record:flow=", "send:flow=x", "forward:a=tcp://x:y"})
    EXPECT_EQ(parse_rules(wrong).code(), Code::kInvalidArgument) << wrong;
}

TEST_F(ServersSinks, RecordWhateverMatchesAndAnotherRunBesideTheFirst) {
  const auto sinks = Sinks::start(*parse_rules(fmt::format("record:fl*={}/", folder_)), server_.at());
  ASSERT_TRUE(sinks.ok());
  write("flow", 3);
  EXPECT_TRUE(has_steps("/flow.nc", 3));
  write("other", 1);
  write("flow", 2);
  EXPECT_TRUE(has_steps("/flow.2.nc", 2));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/other.nc"));
}

TEST_F(ServersSinks, HaveAllStepsAlsoOfAStreamThatWasOverBeforeTheySawIt) {
  const auto rules = *parse_rules(fmt::format("record:fl*={}/", folder_));
  ::streams::ServerOptions options;
  options.keep_bytes = 0;  // late readers have the last step
  options.sinks = rules;
  const ::streams::testing::ServerThread server(options);
  write(server, "flow", 50);
  write(server, "flow", 30);  // another run
  const auto sinks = Sinks::start(rules, server.at());
  ASSERT_TRUE(sinks.ok());
  EXPECT_TRUE(has_steps("/flow.nc", 50));
  EXPECT_TRUE(has_steps("/flow.2.nc", 30));
}

TEST_F(ServersSinks, GoOnWhereTheLastOneWas) {
  const auto rules = *parse_rules(fmt::format("record:flow={}/out.nc", folder_));
  WriterOptions options;
  options.at = server_.at();
  auto writer = *Writer::open("flow", options, ::streams::testing::soon());
  ASSERT_TRUE(writer.define({"t", Type::kDouble, {}, {}, false}).ok());
  for (std::uint64_t step = 0; step < 6; ++step) {
    const auto sinks = Sinks::start(rules, server_.at());  // each time anew
    const auto value = static_cast<double>(step);
    ASSERT_TRUE(writer.begin_step(::streams::testing::soon()).ok());
    ASSERT_TRUE(writer.put("t", {}, &value).ok());
    ASSERT_TRUE(writer.end_step(::streams::testing::soon()).ok());
    ASSERT_TRUE(step % 2 != 0 || has_steps("/out.nc", step + 1));
  }
  ASSERT_TRUE(writer.close(::streams::testing::soon()).ok());
  const auto sinks = Sinks::start(rules, server_.at());
  EXPECT_TRUE(has_steps("/out.nc", 6));
}

}  // namespace
}  // namespace nessie::streams::sinks
