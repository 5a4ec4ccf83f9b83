// SPDX-License-Identifier: BSD-3-Clause
// Steps, from writers to readers.
#include <services/streams/testing.hpp>

#include <gtest/gtest.h>

namespace streams {
namespace {

using namespace testing;
using api::Box;
using api::Reader;
using api::StepState;
using api::Type;
using api::Writer;

/// With one server, and with several.
class Steps : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  Servers servers_{GetParam()};

  Writer open_writer(const std::string &name, int rank = 0, int size = 1, api::WriterOptions options = {}) {
    options.at = servers_.at();
    options.rank = rank;
    options.size = size;
    auto writer = Writer::open(name, options, soon());
    EXPECT_TRUE(writer.ok()) << writer.error().message;
    return *std::move(writer);
  }
  Reader open_reader(const std::string &name, api::ReaderOptions options = {}) {
    options.at = servers_.at();
    auto reader = Reader::open(name, options, soon());
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    return *std::move(reader);
  }
  static void write_step(Writer &writer, const std::string &variable, const Box &box) {
    ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
    const auto values = values_of(writer.step(), box);
    auto put = writer.put(variable, box, values.data());
    ASSERT_TRUE(put.ok()) << put.error().message;
    auto ended = writer.end_step(soon());
    ASSERT_TRUE(ended.ok()) << ended.error().message;
  }
  static std::vector<double> get(Reader &reader, const std::string &variable, const Box &box) {
    std::vector<double> values(values_of(0, box).size());
    auto got = reader.get(variable, box, values.data(), values.size() * sizeof(double), soon());
    EXPECT_TRUE(got.ok()) << got.error().message;
    return values;
  }
};

TEST_P(Steps, OneWriterOneReader_AllStepsInOrder) {
  auto writer = open_writer("flow");
  ASSERT_TRUE(writer.define({"T", Type::kDouble, {4, 6}, {}, false}).ok());
  auto reader = open_reader("flow");
  for (std::uint64_t step = 0; step < 5; ++step) {
    write_step(writer, "T", {{0, 0}, {4, 6}});
    ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
    EXPECT_EQ(reader.step(), step);
    EXPECT_EQ(get(reader, "T", {{1, 2}, {2, 3}}), values_of(step, {{1, 2}, {2, 3}}));
    ASSERT_TRUE(reader.end_step().ok());
  }
  EXPECT_EQ(reader.begin_step(Deadline::now()).value(), StepState::kNotYet);
  ASSERT_TRUE(writer.close(soon()).ok());
  EXPECT_EQ(reader.begin_step(soon()).value(), StepState::kEnd);
}

TEST_P(Steps, BoxesOfManyWriters_AnyBoxOfThem) {
  std::vector<Writer> writers;
  for (int rank = 0; rank < 8; ++rank) {
    writers.push_back(open_writer("flow", rank, 8));
    ASSERT_TRUE(writers.back().define({"T", Type::kDouble, {32, 48, 64}, {}, false}).ok());
  }
  auto reader = open_reader("flow");
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (int rank = 0; rank < 8; ++rank)
      write_step(writers[static_cast<std::size_t>(rank)], "T",
                 {{rank / 4 * 16, rank / 2 % 2 * 24, rank % 2 * 32}, {16, 24, 32}});
    ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
    for (const Box &box : {Box{{0, 0, 0}, {32, 48, 64}}, Box{{8, 0, 0}, {16, 48, 64}}, Box{{15, 23, 31}, {2, 2, 2}},
                           Box{{3, 5, 7}, {20, 30, 40}}, Box{{31, 47, 63}, {1, 1, 1}}})
      EXPECT_EQ(get(reader, "T", box), values_of(step, box));
    ASSERT_TRUE(reader.end_step().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Steps, ::testing::Values(1u, 3u));

/// What a server of another node would do: it pulls what was put.
TEST(StepsOverTcp, LargeArraysArePulledPieceByPiece_AndLentOnesAtOnce) {
  const ServerThread server({}, {}, "tcp");
  auto writer = Writer::open("far", {.at = server.at()}, soon());
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const Box all{{0, 0}, {3, 350'000}};
  for (const char *name : {"copied", "lent", "turned"})
    ASSERT_TRUE(writer->define({name, Type::kDouble, all.count, {}, false}).ok());
  auto reader = Reader::open("far", {.at = server.at()}, soon());
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto values = values_of(step, all);
    std::vector<double> turned(values.size());  // the first dimension fastest
    for (std::size_t i = 0; i < values.size(); ++i) turned[i % 350'000 * 3 + i / 350'000] = values[i];
    ASSERT_EQ(writer->begin_step(soon()).value(), StepState::kOk);
    ASSERT_TRUE(writer->put("copied", all, values.data()).ok());
    ASSERT_TRUE(writer->put_lent("lent", all, values.data()).ok());
    ASSERT_TRUE(writer->put("turned", all, turned.data(), api::Order::kFortran).ok());
    auto ended = writer->end_step(soon());
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    ASSERT_EQ(reader->begin_step(soon()).value(), StepState::kOk);
    for (const char *name : {"copied", "lent", "turned"}) {
      std::vector<double> got(values.size());
      ASSERT_TRUE(reader->get(name, all, got.data(), got.size() * sizeof(double), soon()).ok());
      EXPECT_EQ(got, values) << name;
    }
    ASSERT_TRUE(reader->end_step().ok());
  }
}

}  // namespace
}  // namespace streams
