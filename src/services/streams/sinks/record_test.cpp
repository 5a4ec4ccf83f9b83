// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/record.hpp"

#include "services/streams/sinks/image.hpp"
#include "services/streams/sinks/testing/memory_step.hpp"

#include <base/crc32c.hpp>
#include <base/file.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

namespace nessie::streams::sinks {
namespace {

using testing::MemoryStep;
using testing::values_of;
using Doubles = std::vector<double>;
using Ints = std::vector<std::int32_t>;
using Numbers = std::vector<std::uint64_t>;

class Record : public ::testing::Test {
 protected:
  Record() {
    char name[] = "/tmp/nessie-record-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Record() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Recorder> open(bool append = false, Origin origin = {"flow", 7}) {
    auto recorder = Recorder::open({path(), std::move(origin), append});
    EXPECT_TRUE(recorder.ok()) << recorder.error().to_string();
    return recorder.ok() ? *std::move(recorder) : nullptr;
  }
  void take(Recorder &recorder, MemoryStep step) {
    const auto taken = recorder.take(step);
    EXPECT_TRUE(taken.ok()) << taken.error().to_string();
  }
  /// As somebody else reads it.
  StepFile read() {
    auto netcdf = NetcdfFile::open(path(), false);
    EXPECT_TRUE(netcdf.ok());
    auto file = StepFile::open(*std::move(netcdf));
    EXPECT_TRUE(file.ok()) << file.error().to_string();
    return *std::move(file);
  }
  std::string path() const { return folder_ + "/out.nc"; }

  std::string folder_;
};

/// T is (2, 3), p as many as it is given; x is a constant.
MemoryStep step(std::uint64_t number, const Ints &p = {1, 2}) {
  Doubles values(6);
  std::iota(values.begin(), values.end(), 10.0 * static_cast<double>(number));
  MemoryStep step(number);
  step.add({"T", Type::kDouble, {2, 3}, {}, false}, values);
  step.add({"p", Type::kInt32, {static_cast<std::int64_t>(p.size())}, testing::bytes_of(Ints{-9}), false}, p);
  step.add({"x", Type::kDouble, {3}, {}, true}, Doubles{0.5, 1.5, 2.5});
  step.say(testing::text_attribute("T", "units", "K")).say(testing::text_attribute("", "title", "a flow"));
  return step;
}

TEST_F(Record, HasEachStepAsItWasPut) {
  auto recorder = open();
  for (std::uint64_t number = 0; number < 3; ++number) take(*recorder, step(number));
  ASSERT_TRUE(recorder->finish().ok());
  auto file = read();
  EXPECT_EQ(file.numbers(), (Numbers{0, 1, 2}));
  EXPECT_EQ(file.layout().origin.stream, "flow");
  EXPECT_EQ(file.layout().origin.identity, 7u);
  for (std::size_t record = 0; record < 3; ++record) {
    auto got = *FileStep::open(file, record);
    const auto first = 10.0 * static_cast<double>(record);
    EXPECT_EQ(values_of<double>(got, "T"), (Doubles{first, first + 1, first + 2, first + 3, first + 4, first + 5}));
    EXPECT_EQ(values_of<std::int32_t>(got, "p"), (Ints{1, 2}));
    EXPECT_EQ(values_of<double>(got, "x"), (Doubles{0.5, 1.5, 2.5}));
  }
  EXPECT_EQ(recorder->rewrites(), 0u);
}

TEST_F(Record, GoesOnWithAFileAndTakesNoStepTwice) {
  auto first = open();
  take(*first, step(0));
  take(*first, step(4));
  first.reset();
  auto second = open(true);
  EXPECT_EQ(second->wanted(), 5u);
  auto again = step(4);
  EXPECT_EQ(second->take(again).code(), Code::kOutOfRange);
  take(*second, step(5));
  second.reset();
  EXPECT_EQ(read().numbers(), (Numbers{0, 4, 5}));
}

TEST_F(Record, OverwritesAStepThatWasBegunAndNotFinished) {
  auto recorder = open();
  take(*recorder, step(0));
  auto broken = step(1);
  broken.fail();
  EXPECT_EQ(recorder->take(broken).code(), Code::kPeerLost);
  recorder.reset();  // closes, so what there is of step 1 is in the file
  EXPECT_EQ(read().numbers(), Numbers{0});
  auto next = open(true);
  take(*next, step(1, {7, 8}));
  next.reset();
  auto file = read();
  EXPECT_EQ(file.numbers(), (Numbers{0, 1}));
  auto got = *FileStep::open(file, 1);
  EXPECT_EQ(values_of<std::int32_t>(got, "p"), (Ints{7, 8}));
}

TEST_F(Record, GivesArraysThatGrowRoomAndSaysTheirShapes) {
  auto recorder = open();
  take(*recorder, step(0, {1, 2}));
  take(*recorder, step(1, {3, 4, 5, 6, 7, 8, 9, 10}));
  take(*recorder, step(2, {11}));
  take(*recorder, step(3, {}));
  EXPECT_EQ(recorder->rewrites(), 1u);
  recorder.reset();
  auto file = read();
  EXPECT_EQ(file.numbers(), (Numbers{0, 1, 2, 3}));
  auto one = *FileStep::open(file, 0), two = *FileStep::open(file, 1), three = *FileStep::open(file, 2),
       four = *FileStep::open(file, 3);
  EXPECT_EQ(values_of<std::int32_t>(one, "p"), (Ints{1, 2}));
  EXPECT_EQ(values_of<std::int32_t>(two, "p"), (Ints{3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(values_of<std::int32_t>(three, "p"), Ints{11});
  EXPECT_EQ(find(four, "p")->shape, Extents{0});
  const Variable all{"p", Type::kInt32, {8}, {}, false};
  Ints room(8);
  ASSERT_TRUE(file.get(2, all, whole({8}), std::as_writable_bytes(std::span(room))).ok());
  EXPECT_EQ(room, (Ints{11, -9, -9, -9, -9, -9, -9, -9}));
  EXPECT_EQ(values_of<double>(three, "T").front(), 20);
}

TEST_F(Record, TakesVariablesThatAreNewAndLeavesOutThoseThatAreNotPut) {
  auto recorder = open();
  take(*recorder, step(0));
  MemoryStep other(1);
  other.add({"q", Type::kFloat, {}, {}, false}, std::vector<float>{2.5F});
  take(*recorder, std::move(other));
  take(*recorder, step(2));
  recorder.reset();
  auto file = read();
  auto one = *FileStep::open(file, 1), two = *FileStep::open(file, 2);
  EXPECT_EQ(values_of<float>(one, "q"), std::vector<float>{2.5F});
  EXPECT_EQ(values_of<std::int32_t>(one, "p"), (Ints{-9, -9}));
  EXPECT_EQ(values_of<double>(two, "x"), (Doubles{0.5, 1.5, 2.5}));
}

TEST_F(Record, HasTheLastValueOfAttributesAndConstants) {
  auto recorder = open();
  take(*recorder, step(0));
  auto changed = step(1);
  changed.say(testing::text_attribute("T", "long_name", "temperature"));
  take(*recorder, std::move(changed));
  MemoryStep third(2);
  third.add({"x", Type::kDouble, {3}, {}, true}, Doubles{7, 8, 9}).say(testing::text_attribute("", "title", "a river"));
  take(*recorder, std::move(third));
  EXPECT_EQ(recorder->rewrites(), 0u);  // there is room in the header
  recorder.reset();
  auto file = read();
  auto got = *FileStep::open(file, 1);
  EXPECT_EQ(values_of<double>(got, "T").back(), 15);  // the header has grown, and nothing has moved
  EXPECT_EQ(values_of<double>(got, "x"), (Doubles{7, 8, 9}));
  const auto &attributes = file.layout().attributes;
  EXPECT_EQ(std::ranges::count(attributes, testing::text_attribute("T", "long_name", "temperature")), 1);
  EXPECT_EQ(std::ranges::count(attributes, testing::text_attribute("", "title", "a river")), 1);
}

TEST_F(Record, WritesAnewWhenTheHeaderHasNoRoom) {
  auto recorder = open();
  take(*recorder, step(0));
  auto large = step(1);
  large.say(testing::text_attribute("", "history", std::string(2 * kHeaderReserve, 'h')));
  take(*recorder, std::move(large));
  EXPECT_EQ(recorder->rewrites(), 1u);
  recorder.reset();
  auto file = read();
  auto got = *FileStep::open(file, 0);
  EXPECT_EQ(values_of<double>(got, "T").back(), 5);
}

TEST_F(Record, RefusesFilesThatItMustNotTouch) {
  ASSERT_TRUE(write_file(path(), "letters").ok());
  EXPECT_EQ(Recorder::open({path(), {"flow", 7}, false}).code(), Code::kExists);
  EXPECT_EQ(Recorder::open({path(), {"flow", 7}, true}).code(), Code::kBadMessage);
  EXPECT_EQ(*read_file(path()), "letters");
  std::filesystem::remove(path());
  auto recorder = open();
  take(*recorder, step(0));
  EXPECT_EQ(Recorder::open({path(), {"flow", 7}, true}).code(), Code::kBusy);
  recorder.reset();
  EXPECT_EQ(Recorder::open({path(), {"heat", 7}, true}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Recorder::open({path(), {"flow", 8}, true}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(Recorder::open({path(), {"flow", 0}, true}).ok());
}

TEST_F(Record, DoesNotReplaceAFileThatCameMeanwhile) {
  auto recorder = open();
  ASSERT_TRUE(write_file(path(), "letters").ok());
  auto first = step(0);
  EXPECT_EQ(recorder->take(first).code(), Code::kIo);
  EXPECT_EQ(*read_file(path()), "letters");
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

TEST_F(Record, MovesVariablesThatAreLargerThanASlab) {
  Ints large(3 * kSlabBytes / sizeof(std::int32_t) / 2);
  std::iota(large.begin(), large.end(), 0);
  MemoryStep one(0);
  one.add({"p", Type::kInt32, {3, static_cast<std::int64_t>(large.size()) / 3}, {}, false}, large);
  auto recorder = open();
  take(*recorder, std::move(one));
  recorder.reset();
  auto file = read();
  auto got = *FileStep::open(file, 0);
  EXPECT_EQ(values_of<std::int32_t>(got, "p"), large);
}

TEST(StepImage, IsReadAsItWasMade) {
  auto made = step(3);
  ImageMaker maker({"flow", 7});
  const auto image = maker.make(made);
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(image->bytes.data()), 4), "CDF\5");
  EXPECT_EQ(image->checksum, crc32c(image->bytes));
  auto file = open_image(image->bytes);
  ASSERT_TRUE(file.ok());
  auto got = *FileStep::open(*file, 0);
  EXPECT_EQ(got.number(), 3u);
  EXPECT_EQ(values_of<double>(got, "T").front(), 30);
  EXPECT_EQ(got.variables(), made.variables());
  const std::vector<std::byte> rubbish(4096, std::byte{7});
  EXPECT_EQ(open_image(rubbish).code(), Code::kBadMessage);
}

/// Arrays that are empty, odd, and larger than what is got at once.
MemoryStep any_step(std::uint64_t number, std::int64_t count) {
  using Bytes = std::vector<std::int8_t>;
  MemoryStep step(number);
  Bytes odd(static_cast<std::size_t>(count));
  std::iota(odd.begin(), odd.end(), static_cast<std::int8_t>(number));
  Ints large(static_cast<std::size_t>(300'001 * count));
  std::iota(large.begin(), large.end(), static_cast<std::int32_t>(number));
  step.add({"odd", Type::kInt8, {count}, {}, false}, odd);
  step.add({"large", Type::kInt32, {count, 300'001}, {}, false}, large);
  step.add({"scalar", Type::kInt16, {}, {}, false}, std::vector<std::int16_t>{static_cast<std::int16_t>(number)});
  step.add({"constant", Type::kInt8, {3}, {}, true}, Bytes{1, 2, 3});
  step.say(testing::text_attribute("odd", "count", std::to_string(count)));
  return step;
}

TEST(StepImage, OfStepAfterStep_EachIsReadAsItIs) {
  ImageMaker maker({"flow", 7});
  std::uint64_t number = 0;
  for (const std::int64_t count : {3, 3, 0, 5, 1}) {
    auto made = any_step(number, count);
    const auto image = maker.make(made);
    ASSERT_TRUE(image.ok()) << image.error().to_string();
    EXPECT_EQ(image->checksum, crc32c(image->bytes));
    auto file = open_image(image->bytes);
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    auto got = *FileStep::open(*file, 0);
    EXPECT_EQ(got.number(), number);
    EXPECT_EQ(got.variables(), made.variables());
    for (const auto *name : {"odd", "constant"})
      EXPECT_EQ(values_of<std::int8_t>(got, name), values_of<std::int8_t>(made, name)) << name << " of " << number;
    EXPECT_EQ(values_of<std::int32_t>(got, "large"), values_of<std::int32_t>(made, "large")) << number;
    EXPECT_EQ(values_of<std::int16_t>(got, "scalar"), values_of<std::int16_t>(made, "scalar")) << number;
    ++number;
  }
}

TEST(StepImage, ThatFails_LeavesTheNextOneRight) {
  ImageMaker maker({"flow", 7});
  auto lost = step(0);
  lost.fail();
  EXPECT_EQ(maker.make(lost).code(), Code::kPeerLost);
  auto made = step(1);
  const auto image = maker.make(made);
  ASSERT_TRUE(image.ok());
  auto file = open_image(image->bytes);
  ASSERT_TRUE(file.ok());
  auto got = *FileStep::open(*file, 0);
  EXPECT_EQ(values_of<double>(got, "T").front(), 10);
}

}  // namespace
}  // namespace nessie::streams::sinks
