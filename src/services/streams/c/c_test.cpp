// SPDX-License-Identifier: BSD-3-Clause
// nessie/streams.h: what is particular to C. What all languages share is in tests/languages.
#include <nessie/streams.h>
#include <services/streams/testing.hpp>

#include <gtest/gtest.h>

#include <array>

namespace streams {
namespace {

constexpr std::int32_t kSoon = 60'000;
constexpr std::array<std::int64_t, 2> kShape{3, 4}, kOrigin{0, 0};
constexpr std::uint64_t kBytes = 12 * sizeof(double);

class StreamsInC : public ::testing::Test {
 protected:
  testing::Servers servers_;
  const std::string at_ = servers_.at();
  std::vector<nessie_stream *> opened_;

  void TearDown() override {
    for (auto *each : opened_) (void)nessie_stream_drop(each);
  }
  nessie_stream *open(std::int32_t mode, nessie_stream_options options = {}) {
    options.at = at_.c_str();
    nessie_stream *stream = nullptr;
    EXPECT_EQ(nessie_stream_open("flow", mode, 0, 1, &options, kSoon, &stream), NESSIE_OK)
        << nessie_stream_last_error();
    opened_.push_back(stream);
    return stream;
  }
  /// With a variable T.
  nessie_stream *open_writer(const nessie_stream_options &options = {}) {
    auto *out = open(NESSIE_STREAM_WRITE, options);
    const nessie_stream_variable variable{"T", NESSIE_STREAM_DOUBLE, 2, kShape.data(), nullptr, 0};
    EXPECT_EQ(nessie_stream_define(out, &variable), NESSIE_OK) << nessie_stream_last_error();
    return out;
  }
  nessie_stream *open_reader(const nessie_stream_options &options = {}) { return open(NESSIE_STREAM_READ, options); }

  static std::int32_t begin(nessie_stream *stream, std::int32_t timeout_ms = kSoon) {
    std::int32_t state = -1;
    EXPECT_EQ(nessie_stream_begin_step(stream, timeout_ms, &state), NESSIE_OK) << nessie_stream_last_error();
    return state;
  }
  static void write_step(nessie_stream *out, double value) {
    EXPECT_EQ(begin(out), NESSIE_STREAM_STEP_OK);
    std::array<double, 12> data{};
    data.fill(value);
    EXPECT_EQ(nessie_stream_put(out, "T", 2, kOrigin.data(), kShape.data(), data.data()), NESSIE_OK);
    EXPECT_EQ(nessie_stream_end_step(out, kSoon), NESSIE_OK) << nessie_stream_last_error();
  }
  /// The value that write_step() gave the open step.
  static double value_in(nessie_stream *in) {
    std::array<double, 12> data{};
    EXPECT_EQ(nessie_stream_get(in, "T", 2, kOrigin.data(), kShape.data(), data.data(), kBytes, kSoon), NESSIE_OK)
        << nessie_stream_last_error();
    return data.back();
  }
};

// --- what cannot be ---------------------------------------------------------------------------------------------------

TEST_F(StreamsInC, OpenOfWhatCannotBe_IsRefusedAndGivesNoStream) {
  auto *const untouched = reinterpret_cast<nessie_stream *>(8);
  nessie_stream *stream = untouched;
  const auto refused = [&](const char *name, int mode, int rank, int size, const nessie_stream_options *options,
                           int timeout_ms) {
    return nessie_stream_open(name, mode, rank, size, options, timeout_ms, &stream) == NESSIE_INVALID_ARGUMENT &&
           *nessie_stream_last_error() != '\0' && stream == untouched;
  };
  nessie_stream_options here{}, durability{}, reading{}, from{};
  here.at = durability.at = reading.at = from.at = at_.c_str();
  durability.durability = 3;
  reading.reading = 2;
  from.from = -1;
  EXPECT_TRUE(refused(nullptr, NESSIE_STREAM_READ, 0, 1, &here, kSoon));
  EXPECT_TRUE(refused("flow", 3, 0, 1, &here, kSoon));
  EXPECT_TRUE(refused("flow", NESSIE_STREAM_WRITE, 1, 1, &here, kSoon));
  EXPECT_TRUE(refused("flow", NESSIE_STREAM_WRITE, 0, 0, &here, kSoon));
  EXPECT_TRUE(refused("flow", NESSIE_STREAM_WRITE, 0, 1, &here, -2));
  EXPECT_TRUE(refused("flow", NESSIE_STREAM_WRITE, 0, 1, &durability, kSoon));
  EXPECT_TRUE(refused("flow", NESSIE_STREAM_READ, 0, 1, &reading, kSoon));
  EXPECT_TRUE(refused("flow", NESSIE_STREAM_READ, 0, 1, &from, kSoon));
  EXPECT_EQ(nessie_stream_open("flow", NESSIE_STREAM_READ, 0, 1, &here, kSoon, nullptr), NESSIE_INVALID_ARGUMENT);
}

TEST_F(StreamsInC, NoSuchStream_TimesOut) {
  nessie_stream *stream = nullptr;
  nessie_stream_options here{};
  here.at = at_.c_str();
  EXPECT_EQ(nessie_stream_open("none", NESSIE_STREAM_READ, 0, 1, &here, 20, &stream), NESSIE_TIMED_OUT);
  EXPECT_EQ(stream, nullptr);
}

TEST_F(StreamsInC, FunctionsOfTheOtherSide_AreRefused) {
  auto *out = open_writer();
  write_step(out, 1);
  auto *in = open_reader();
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  double data[12];
  void *memory = data;
  const nessie_stream_variable *variables = nullptr, again{"T", NESSIE_STREAM_DOUBLE, 2, kShape.data(), nullptr, 0};
  std::uint64_t count = 7;
  EXPECT_EQ(nessie_stream_define(in, &again), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_stream_put(in, "T", 2, kOrigin.data(), kShape.data(), data), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_stream_span(in, "T", 2, kOrigin.data(), kShape.data(), &memory), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(memory, data);
  EXPECT_EQ(nessie_stream_get(out, "T", 2, kOrigin.data(), kShape.data(), data, kBytes, 0), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_stream_variables(out, &variables, &count), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(nessie_stream_unsubscribe(out, 0), NESSIE_INVALID_ARGUMENT);
}

TEST_F(StreamsInC, BoxesThatCannotBe_AreRefusedAndTheStepGoesOn) {
  auto *out = open_writer();
  double data[12] = {};
  constexpr std::array<std::int64_t, 2> kBeyond{1, 0};
  EXPECT_EQ(nessie_stream_put(out, "T", 2, kOrigin.data(), kShape.data(), data), NESSIE_INVALID_ARGUMENT);
  ASSERT_EQ(begin(out), NESSIE_STREAM_STEP_OK);
  const auto put = [&](const char *name, int ndims, const std::int64_t *start, const double *from) {
    return nessie_stream_put(out, name, ndims, start, kShape.data(), from);
  };
  EXPECT_EQ(put(nullptr, 2, kOrigin.data(), data), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(put("T", 17, kOrigin.data(), data), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(put("T", -1, kOrigin.data(), data), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(put("T", 2, nullptr, data), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(put("T", 2, kOrigin.data(), nullptr), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(put("T", 1, kOrigin.data(), data), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(put("U", 2, kOrigin.data(), data), NESSIE_NOT_FOUND);
  EXPECT_EQ(put("T", 2, kBeyond.data(), data), NESSIE_OUT_OF_RANGE);
  EXPECT_EQ(put("T", 2, kOrigin.data(), data), NESSIE_OK);
  EXPECT_EQ(put("T", 2, kOrigin.data(), data), NESSIE_OUT_OF_RANGE) << "overlaps";
  EXPECT_EQ(nessie_stream_end_step(out, kSoon), NESSIE_OK);
  auto *in = open_reader();
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  EXPECT_EQ(nessie_stream_get(in, "T", 2, kOrigin.data(), kShape.data(), data, kBytes - 1, kSoon), NESSIE_OUT_OF_RANGE);
  EXPECT_EQ(nessie_stream_get(in, "T", 2, kOrigin.data(), kShape.data(), nullptr, kBytes, kSoon),
            NESSIE_INVALID_ARGUMENT);
}

TEST_F(StreamsInC, DescriptionsThatCannotBe_AreRefused) {
  auto *out = open_writer();
  const auto define = [&](const char *name, int type, int ndims, const std::int64_t *shape) {
    const nessie_stream_variable variable{name, type, ndims, shape, nullptr, 0};
    return nessie_stream_define(out, &variable);
  };
  EXPECT_EQ(nessie_stream_define(out, nullptr), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define(nullptr, NESSIE_STREAM_INT8, 2, kShape.data()), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define("", NESSIE_STREAM_INT8, 2, kShape.data()), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define("U", 0, 2, kShape.data()), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define("U", 12, 2, kShape.data()), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define("U", NESSIE_STREAM_INT8, 17, kShape.data()), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define("U", NESSIE_STREAM_INT8, 2, nullptr), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(define("T", NESSIE_STREAM_INT8, 2, kShape.data()), NESSIE_INVALID_ARGUMENT) << "another type than before";
  nessie_stream_attribute attribute{nullptr, "a", NESSIE_STREAM_INT32, 1, nullptr};
  EXPECT_EQ(nessie_stream_set_attribute(out, &attribute), NESSIE_INVALID_ARGUMENT);
  attribute = {"U", "a", NESSIE_STREAM_CHAR, 1, "x"};
  EXPECT_EQ(nessie_stream_set_attribute(out, &attribute), NESSIE_NOT_FOUND);
  EXPECT_EQ(nessie_stream_type_size(0), 0u);
  EXPECT_STREQ(nessie_stream_type_name(12), "");
}

// --- handles ----------------------------------------------------------------------------------------------------------

TEST_F(StreamsInC, ClosedHandles_AreRecognised) {
  auto *out = open_writer();
  write_step(out, 1);
  auto *in = open_reader();
  EXPECT_EQ(nessie_stream_close(out, kSoon), NESSIE_OK) << nessie_stream_last_error();
  EXPECT_EQ(nessie_stream_close(in, kSoon), NESSIE_OK) << nessie_stream_last_error();
  for (auto *closed : {out, in, static_cast<nessie_stream *>(nullptr)}) {
    std::int32_t state = 7;
    EXPECT_EQ(nessie_stream_begin_step(closed, 0, &state), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(nessie_stream_end_step(closed, 0), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(nessie_stream_close(closed, 0), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(nessie_stream_drop(closed), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(nessie_stream_step(closed), 0u);
    EXPECT_EQ(nessie_stream_missed(closed), 0u);
    EXPECT_EQ(state, 7);
  }
}

TEST_F(StreamsInC, AHandleOfAnotherKind_IsRecognised) {
  nessie_space *space = nullptr;
  ASSERT_EQ(nessie_space_open(at_.c_str(), kSoon, &space), NESSIE_OK) << nessie_stream_last_error();
  EXPECT_EQ(nessie_stream_drop(reinterpret_cast<nessie_stream *>(space)), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_space_close(reinterpret_cast<nessie_space *>(open_writer())), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_space_close(space), NESSIE_OK);
  EXPECT_EQ(nessie_space_close(space), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_space_newest(space, "x", 0, nullptr), NESSIE_INVALID_ARGUMENT);
}

TEST_F(StreamsInC, WhatOneThreadFailedIn_IsNotWhatAnotherHears) {
  EXPECT_EQ(nessie_stream_drop(nullptr), NESSIE_INVALID_ARGUMENT);
  std::string other = "something";
  std::thread([&] { other = nessie_stream_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_STREQ(nessie_stream_last_error(), "the stream is null or closed");
}

// --- opening, and leaving ---------------------------------------------------------------------------------------------

TEST_F(StreamsInC, AnAppendingWriter_GoesOn) {
  auto *out = open_writer();
  write_step(out, 1);
  EXPECT_EQ(nessie_stream_close(out, kSoon), NESSIE_OK);
  nessie_stream_options options{};
  options.append = 1;
  out = open_writer(options);
  EXPECT_EQ(nessie_stream_step(out), 1u);
  write_step(out, 2);
  auto *in = open_reader();
  for (const double value : {1, 2}) {
    ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
    EXPECT_EQ(value_in(in), value);
    EXPECT_EQ(nessie_stream_end_step(in, 0), NESSIE_OK);
  }
}

TEST_F(StreamsInC, AwaitedReaders_AreWaitedFor) {
  nessie_stream_options options{};
  options.await_readers = 1;
  auto *out = open_writer(options);
  EXPECT_EQ(begin(out, 20), NESSIE_STREAM_NOT_YET);
  (void)open_reader();
  EXPECT_EQ(begin(out), NESSIE_STREAM_STEP_OK);
}

TEST_F(StreamsInC, AView_SeesTheNewestAndHearsWhatItMissed) {
  auto *out = open_writer();
  write_step(out, 0);
  nessie_stream_options options{};
  options.reading = NESSIE_STREAM_VIEW;
  options.from = NESSIE_STREAM_FROM_LATEST;
  auto *in = open_reader(options);
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  EXPECT_EQ(nessie_stream_end_step(in, 0), NESSIE_OK);
  (void)begin(in, 0);  // nothing is asked for ahead any more
  for (const double value : {1, 2, 3}) write_step(out, value);
  EXPECT_EQ(nessie_stream_close(out, kSoon), NESSIE_OK);
  std::uint64_t seen = 0, missed = 0;
  while (begin(in) == NESSIE_STREAM_STEP_OK) {
    ++seen;
    missed += nessie_stream_missed(in);
    EXPECT_EQ(value_in(in), static_cast<double>(nessie_stream_step(in)));
    EXPECT_EQ(nessie_stream_end_step(in, 0), NESSIE_OK);
  }
  EXPECT_EQ(seen + missed, 3u);
  EXPECT_EQ(nessie_stream_step(in), 3u);
}

void note_subscriptions(const nessie_stream_info *info, void *context) {
  auto &found = *static_cast<std::vector<std::string> *>(context);
  for (std::uint64_t i = 0; i < info->reader_count; ++i)
    found.emplace_back(std::string(info->name) + ":" + info->readers[i].subscription);
}

TEST_F(StreamsInC, ASubscription_ResumesUntilItIsLetGo) {
  auto *out = open_writer();
  nessie_stream_options options{};
  options.subscription = "archive";
  auto *in = open_reader(options);
  for (const double value : {1, 2, 3}) write_step(out, value);
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  EXPECT_EQ(nessie_stream_end_step(in, 0), NESSIE_OK);
  EXPECT_EQ(nessie_stream_close(in, kSoon), NESSIE_OK);
  in = open_reader(options);
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  EXPECT_EQ(value_in(in), 2);
  std::vector<std::string> found;
  EXPECT_EQ(nessie_stream_list(at_.c_str(), kSoon, note_subscriptions, &found), NESSIE_OK);
  EXPECT_EQ(found, std::vector<std::string>{"flow:archive"});
  EXPECT_EQ(nessie_stream_unsubscribe(in, kSoon), NESSIE_OK) << nessie_stream_last_error();
  found.clear();
  EXPECT_EQ(nessie_stream_list(at_.c_str(), kSoon, note_subscriptions, &found), NESSIE_OK);
  EXPECT_TRUE(found.empty());
}

// --- who is there -----------------------------------------------------------------------------------------------------

void check_info(const nessie_stream_info *info, void *context) {
  ++*static_cast<int *>(context);
  EXPECT_STREQ(info->name, "flow");
  EXPECT_EQ(info->status, NESSIE_STREAM_OPEN);
  EXPECT_EQ(info->steps, 2u);
  EXPECT_EQ(info->writers, 1);
  EXPECT_EQ(info->connected, 1);
  EXPECT_EQ(info->durability, NESSIE_STREAM_MEMORY);
  ASSERT_EQ(info->variable_count, 1u);
  EXPECT_STREQ(info->variables[0].name, "T");
  EXPECT_EQ(info->variables[0].shape[1], 4);
  ASSERT_EQ(info->attribute_count, 1u);
  EXPECT_STREQ(info->attributes[0].name, "units");
}

TEST_F(StreamsInC, AList_HasWhatTheServersKnow) {
  nessie_stream_options options{};
  options.durability = NESSIE_STREAM_MEMORY;
  auto *out = open_writer(options);
  const nessie_stream_attribute units{"T", "units", NESSIE_STREAM_CHAR, 1, "K"};
  EXPECT_EQ(nessie_stream_set_attribute(out, &units), NESSIE_OK);
  write_step(out, 1);
  write_step(out, 2);
  int count = 0;
  EXPECT_EQ(nessie_stream_list(at_.c_str(), kSoon, check_info, &count), NESSIE_OK) << nessie_stream_last_error();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(nessie_stream_list(at_.c_str(), kSoon, nullptr, nullptr), NESSIE_INVALID_ARGUMENT);
}

// --- memory, and the shared space -------------------------------------------------------------------------------------

TEST_F(StreamsInC, AllocatedMemory_IsGotIntoAndFreedOnce) {
  auto *out = open_writer();
  write_step(out, 4);
  auto *in = open_reader();
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  void *memory = nullptr;
  ASSERT_EQ(nessie_stream_allocate(kBytes, &memory), NESSIE_OK) << nessie_stream_last_error();
  EXPECT_EQ(static_cast<double *>(memory)[11], 0);
  EXPECT_EQ(nessie_stream_get(in, "T", 2, kOrigin.data(), kShape.data(), memory, kBytes, kSoon), NESSIE_OK);
  EXPECT_EQ(static_cast<double *>(memory)[11], 4);
  EXPECT_EQ(nessie_stream_free(memory), NESSIE_OK);
  EXPECT_EQ(nessie_stream_free(memory), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_stream_free(nullptr), NESSIE_OK);
}

TEST_F(StreamsInC, TheSharedSpace_KeepsVersions) {
  nessie_space *space = nullptr;
  ASSERT_EQ(nessie_space_open(at_.c_str(), kSoon, &space), NESSIE_OK) << nessie_stream_last_error();
  const std::int64_t start[1] = {2}, count[1] = {3};
  const std::int32_t data[3] = {7, 8, 9};
  std::int32_t got[3] = {};
  std::uint64_t version = 99;
  EXPECT_EQ(nessie_space_newest(space, "edges", kSoon, &version), NESSIE_NOT_FOUND);
  EXPECT_EQ(version, 99u);
  const auto put = [&] {
    return nessie_space_put(space, "edges", 4, NESSIE_STREAM_INT32, 1, start, count, data, kSoon);
  };
  EXPECT_EQ(put(), NESSIE_OK) << nessie_stream_last_error();
  EXPECT_EQ(put(), NESSIE_EXISTS);
  EXPECT_EQ(nessie_space_newest(space, "edges", kSoon, &version), NESSIE_OK);
  EXPECT_EQ(version, 4u);
  const auto get = [&](std::int32_t type, std::uint64_t which, std::uint64_t size_bytes, std::int32_t timeout_ms) {
    return nessie_space_get(space, "edges", which, type, 1, start, count, got, size_bytes, timeout_ms);
  };
  EXPECT_EQ(get(NESSIE_STREAM_INT32, 4, sizeof got, kSoon), NESSIE_OK) << nessie_stream_last_error();
  EXPECT_EQ(got[2], 9);
  EXPECT_EQ(get(NESSIE_STREAM_INT32, 5, sizeof got, 20), NESSIE_TIMED_OUT);
  EXPECT_EQ(get(NESSIE_STREAM_INT32, 4, sizeof got - 1, kSoon), NESSIE_OUT_OF_RANGE);
  EXPECT_EQ(get(NESSIE_STREAM_DOUBLE, 4, 3 * sizeof(double), kSoon), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(get(0, 4, sizeof got, kSoon), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nessie_space_close(space), NESSIE_OK);
}

TEST_F(StreamsInC, ADroppedWriter_IsToldToReadersAsADeadOne) {
  auto *out = open_writer();
  write_step(out, 5);
  auto *in = open_reader();
  ASSERT_EQ(begin(in), NESSIE_STREAM_STEP_OK);
  EXPECT_EQ(value_in(in), 5);
  EXPECT_EQ(nessie_stream_end_step(in, 0), NESSIE_OK);
  EXPECT_EQ(nessie_stream_drop(out), NESSIE_OK);
  std::int32_t state = 7;
  EXPECT_EQ(nessie_stream_begin_step(in, kSoon, &state), NESSIE_PEER_LOST);
  EXPECT_EQ(state, 7);
}

}  // namespace
}  // namespace streams
