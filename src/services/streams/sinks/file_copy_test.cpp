// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/file_copy.hpp"
#include "services/streams/sinks/record.hpp"

#include "services/streams/sinks/testing/memory_step.hpp"

#include <base/file.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace nessie::streams::sinks {
namespace {

using testing::MemoryStep;
using Doubles = std::vector<double>;
using Ints = std::vector<std::int32_t>;
using Header = std::shared_ptr<const std::vector<std::byte>>;

class FileCopies : public ::testing::Test {
 protected:
  FileCopies() {
    char name[] = "/tmp/nessie-copy-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~FileCopies() override { std::filesystem::remove_all(folder_); }

  /// Of a program's file: `time` records of T(time, x) and of p(time), and the fixed x(x); with another fixed variable
  /// behind them, if it is `wider`.
  Header header(const std::string &title = "a flow", bool wider = false) {
    auto file = NetcdfFile::create(folder_ + "/program.nc", 2);
    const int x = *file->define_dimension("x", 2), time = *file->define_dimension("time", 0);
    (void)file->define_dimension("unused", 7);
    EXPECT_TRUE(file->put_attribute(kGlobal, "title", Type::kChar, bytes(title)).ok());
    const int p = *file->define_variable("p", Type::kInt32, {time});
    (void)file->define_variable("x", Type::kDouble, {x});
    (void)file->define_variable("T", Type::kDouble, {time, x});
    EXPECT_TRUE(file->put_attribute(p, "_FillValue", Type::kInt32, testing::bytes_of(Ints{-9})).ok());
    EXPECT_TRUE(file->put_attribute(p, "range", Type::kInt32, testing::bytes_of(Ints{0, 99})).ok());
    if (wider) (void)file->define_variable("more", Type::kDouble, {x});
    return finish(*file);
  }
  /// Of a file without records.
  Header fixed_header() {
    auto file = NetcdfFile::create(folder_ + "/program.nc", 1);
    const int x = *file->define_dimension("x", 2);
    (void)file->define_variable("x", Type::kDouble, {x});
    (void)file->define_variable("T", Type::kDouble, {x});
    return finish(*file);
  }
  Header finish(NetcdfFile &file) {
    EXPECT_TRUE(file.end_definitions(0).ok());
    EXPECT_TRUE(file.close().ok());
    const auto text = read_file(folder_ + "/program.nc");
    const auto all = std::as_bytes(std::span(*text));
    auto form = staging::parse_classic_header(all);
    EXPECT_TRUE(form.ok());
    return std::make_shared<const std::vector<std::byte>>(form->bytes);
  }
  static std::vector<std::byte> bytes(const std::string &text) {
    return testing::bytes_of(std::vector<char>(text.begin(), text.end()));
  }

  std::unique_ptr<Recorder> open(bool append = false, Origin origin = {"out.nc", 7}) {
    auto recorder = Recorder::open({path(), std::move(origin), append});
    EXPECT_TRUE(recorder.ok()) << recorder.error().to_string();
    return recorder.ok() ? *std::move(recorder) : nullptr;
  }
  static void take(Recorder &recorder, MemoryStep step) {
    const auto taken = recorder.take(step);
    EXPECT_TRUE(taken.ok()) << taken.error().to_string();
  }
  Form form_of_file() const {
    const auto text = read_file(path());
    auto form = staging::parse_classic_header(std::as_bytes(std::span(*text)));
    EXPECT_TRUE(form.ok());
    return *form;
  }
  template <class T> std::vector<T> values(const char *name, const Box &box) const {
    auto file = NetcdfFile::open(path(), false);
    const auto form = form_of_file();
    const auto *variable = form.find(name);
    EXPECT_NE(variable, nullptr);
    std::vector<T> all(elements_of(box));
    EXPECT_TRUE(file->get(variable->varid, box, all.data()).ok());
    return all;
  }
  Doubles temperatures(std::int64_t records) const { return values<double>("T", {{0, 0}, {records, 2}}); }
  Ints pressures(std::int64_t records) const { return values<std::int32_t>("p", {{0}, {records}}); }
  std::string path() const { return folder_ + "/out.nc"; }

  std::string folder_;
};

/// Record `record` of a file with that header.
MemoryStep step(std::uint64_t number, std::int64_t record, const Header &header) {
  const auto value = static_cast<double>(record);
  MemoryStep step(number);
  step.add({"T", Type::kDouble, {2}, {}, false}, Doubles{value, value + 0.5});
  step.add({"p", Type::kInt32, {}, testing::bytes_of(Ints{-9}), false}, Ints{static_cast<std::int32_t>(record) * 10});
  return step.of({Source::Kind::kRecord, record, header});
}

void add_grid(MemoryStep &step) { step.add({"x", Type::kDouble, {2}, {}, true}, Doubles{3, 4}); }

TEST_F(FileCopies, AFileWithRecordsIsTheSameFile) {
  const auto of_program = header();
  auto recorder = open();
  auto first = step(0, 0, of_program);
  add_grid(first);
  take(*recorder, first);
  take(*recorder, step(1, 1, of_program));
  ASSERT_TRUE(recorder->finish().ok());
  const auto wanted = *staging::parse_classic_header(*of_program), got = form_of_file();
  EXPECT_TRUE(has_same_definitions(wanted, got));
  EXPECT_EQ(got.format, 2);
  EXPECT_EQ(got.dimensions.size(), 3U);
  EXPECT_EQ(got.num_records, 2);
  EXPECT_EQ(got.attributes, wanted.attributes);
  for (std::size_t at = 0; at < wanted.variables.size(); ++at)
    EXPECT_EQ(got.variables[at].attributes, wanted.variables[at].attributes);
  EXPECT_EQ(temperatures(2), (Doubles{0, 0.5, 1, 1.5}));
  EXPECT_EQ(pressures(2), (Ints{0, 10}));
  EXPECT_EQ(values<double>("x", {{0}, {2}}), (Doubles{3, 4}));
}

TEST_F(FileCopies, GoesOnWhereItWasKilledAndTakesNoStepTwice) {
  const auto of_program = header();
  auto first = open();
  take(*first, step(0, 0, of_program));
  auto broken = step(1, 1, of_program);
  broken.fail();
  EXPECT_EQ(first->take(broken).code(), Code::kPeerLost);
  first.reset();
  auto second = open(true);
  EXPECT_EQ(second->wanted(), 1U);
  auto again = step(0, 0, of_program);
  EXPECT_EQ(second->take(again).code(), Code::kOutOfRange);
  take(*second, step(1, 1, of_program));
  second.reset();
  EXPECT_EQ(temperatures(2), (Doubles{0, 0.5, 1, 1.5}));
  EXPECT_FALSE(Recorder::open({path(), {"out.nc", 8}, true}).ok());
  EXPECT_EQ(Recorder::open({path(), {"out.nc", 7}, false}).code(), Code::kExists);
}

TEST_F(FileCopies, ALineThatWasBeingWrittenCountsForNothing) {
  const auto of_program = header();
  auto first = open();
  take(*first, step(0, 0, of_program));
  take(*first, step(1, 1, of_program));
  first.reset();
  std::filesystem::resize_file(path() + ".steps", std::filesystem::file_size(path() + ".steps") - 1);
  auto second = open(true);
  EXPECT_EQ(second->wanted(), 1U);
  take(*second, step(1, 1, of_program));
  second.reset();
  EXPECT_EQ(open(true)->wanted(), 2U);
  EXPECT_EQ(pressures(2), (Ints{0, 10}));
}

TEST_F(FileCopies, WhatIsGoneHasFillValues_AndIsCounted) {
  const auto of_program = header();
  auto recorder = open();
  auto gone = step(1, 1, of_program);
  gone.lose("p");
  take(*recorder, gone);
  EXPECT_EQ(recorder->missing(), 1U);
  take(*recorder, step(2, 3, of_program));
  recorder.reset();
  EXPECT_EQ(pressures(4), (Ints{-9, -9, -9, 30}));
  const auto none = temperatures(4);
  EXPECT_EQ(none[2], 1);
  EXPECT_EQ(testing::bytes_of(Doubles{none[0]}), usual_fill(Type::kDouble));
}

TEST_F(FileCopies, AFixedVariableThatWasGoneMayComeAgain) {
  const auto of_program = header();
  auto recorder = open();
  auto gone = step(0, 0, of_program);
  add_grid(gone);
  gone.lose("x");
  take(*recorder, gone);
  EXPECT_EQ(recorder->missing(), 1U);
  auto next = step(1, 1, of_program);
  add_grid(next);
  take(*recorder, next);
  EXPECT_EQ(recorder->missing(), 0U);
  recorder.reset();
  EXPECT_EQ(values<double>("x", {{0}, {2}}), (Doubles{3, 4}));
}

TEST_F(FileCopies, WhoGoesOnKnowsWhichFixedVariableWasGone) {
  const auto of_program = header();
  auto first = open();
  auto gone = step(0, 0, of_program);
  add_grid(gone);
  gone.lose("x");
  take(*first, gone);
  first.reset();
  auto second = open(true);
  EXPECT_EQ(second->missing(), 1U);
  auto next = step(1, 1, of_program);
  add_grid(next);
  take(*second, next);
  second.reset();
  EXPECT_EQ(open(true)->missing(), 0U);
  EXPECT_EQ(values<double>("x", {{0}, {2}}), (Doubles{3, 4}));
}

TEST_F(FileCopies, AListOfStepsBesideARecordOfAnotherKindIsNoneOfIts) {
  const auto beside = path() + ".steps", kept = path() + ".kept";
  auto copy = open();
  take(*copy, step(0, 0, header()));
  copy.reset();
  std::filesystem::rename(path(), path() + ".away");
  std::filesystem::copy_file(beside, kept);
  const Origin flow{"flow", 9};
  auto recorder = Recorder::open({path(), flow, false});
  ASSERT_TRUE(recorder.ok()) << recorder.error().message;
  MemoryStep first(0);
  first.add({"t", Type::kDouble, {}, {}, false}, Doubles{1});
  take(**recorder, first);
  recorder->reset();
  EXPECT_FALSE(std::filesystem::exists(beside));
  std::filesystem::copy_file(kept, beside);
  auto again = Recorder::open({path(), flow, true});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)->wanted(), 1U);
}

TEST_F(FileCopies, FollowsWhatTheProgramDefinesAnew) {
  auto recorder = open();
  take(*recorder, step(0, 0, header()));
  take(*recorder, step(1, 1, header("a flow in a pipe")));
  EXPECT_EQ(form_of_file().attributes.front().value, bytes("a flow in a pipe"));
  auto last = step(2, 2, header("a flow in a pipe", true));
  last.add({"more", Type::kDouble, {2}, {}, true}, Doubles{8, 9});
  take(*recorder, last);
  recorder.reset();
  EXPECT_EQ(form_of_file().variables.size(), 4U);
  EXPECT_EQ(temperatures(3), (Doubles{0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(values<double>("more", {{0}, {2}}), (Doubles{8, 9}));
}

TEST_F(FileCopies, AFileWithoutRecordsHasWhatItsLastStepHas) {
  const auto of_program = fixed_header();
  auto recorder = open();
  for (std::uint64_t number = 0; number < 3; ++number) {
    MemoryStep all(number);
    all.add({"x", Type::kDouble, {2}, {}, false}, Doubles{1, 2});
    all.add({"T", Type::kDouble, {2}, {}, false}, Doubles{5, static_cast<double>(number)});
    if (number == 1) all.lose("T");
    take(*recorder, all.of({Source::Kind::kFile, Source::kNoRecord, of_program}));
    EXPECT_EQ(recorder->missing(), number == 1 ? 1U : 0U);
    EXPECT_EQ(values<double>("T", {{0}, {2}}), (Doubles{5, number == 2 ? 2.0 : 0.0}));
  }
  recorder.reset();
  EXPECT_TRUE(has_same_definitions(*staging::parse_classic_header(*of_program), form_of_file()));
  EXPECT_EQ(open(true)->wanted(), 3U);
}

TEST_F(FileCopies, NumberedFilesWithRecordsAreOneBehindTheOther) {
  const auto of_program = header();
  auto recorder = open();
  std::int64_t records = 0;
  for (std::uint64_t number = 0; number < 3; ++number) {
    const auto its = static_cast<std::int64_t>(number + 1);
    MemoryStep file(number);
    file.add({"p", Type::kInt32, {its}, {}, false}, Ints(number + 1, static_cast<std::int32_t>(number)));
    file.add({"T", Type::kDouble, {its, 2}, {}, false}, Doubles(2 * (number + 1), 7));
    file.add({"x", Type::kDouble, {2}, {}, false}, Doubles{static_cast<double>(number), 4});
    take(*recorder, file.of({Source::Kind::kNumberedFile, Source::kNoRecord, header()}));
    records += its;
    recorder.reset();
    recorder = open(true);
  }
  recorder.reset();
  EXPECT_EQ(form_of_file().num_records, records);
  EXPECT_EQ(pressures(records), (Ints{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values<double>("x", {{0}, {2}}), (Doubles{2, 4}));
}

TEST_F(FileCopies, NumberedFilesWithoutRecordsAreRecordsOfStep_ButForCoordinates) {
  auto recorder = open();
  for (std::uint64_t number = 0; number < 2; ++number) {
    MemoryStep file(number);
    file.add({"x", Type::kDouble, {2}, {}, false}, Doubles{1, 2});
    file.add({"T", Type::kDouble, {2}, {}, false}, Doubles{5, static_cast<double>(number)});
    take(*recorder, file.of({Source::Kind::kNumberedFile, Source::kNoRecord, fixed_header()}));
  }
  auto other = MemoryStep(2).of({Source::Kind::kNumberedFile, Source::kNoRecord, header()});
  EXPECT_EQ(recorder->take(other).code(), Code::kUnsupported);
  recorder.reset();
  const auto form = form_of_file();
  EXPECT_EQ(form.dimensions.front(), (staging::ClassicDimension{"step", 0}));
  EXPECT_EQ(form.find("T")->dimensions, (std::vector<std::string>{"step", "x"}));
  EXPECT_EQ(form.find("x")->dimensions, (std::vector<std::string>{"x"}));
  EXPECT_EQ(temperatures(2), (Doubles{5, 0, 5, 1}));
}

TEST_F(FileCopies, HasOnlyWhatIsWanted) {
  auto recorder = open();
  auto some = step(0, 0, header());
  some.want("p");
  take(*recorder, some);
  recorder.reset();
  const auto form = form_of_file();
  ASSERT_EQ(form.variables.size(), 1U);
  EXPECT_EQ(form.dimensions, (std::vector<staging::ClassicDimension>{{"time", 0}}));
  EXPECT_EQ(pressures(1), Ints{0});
}

}  // namespace
}  // namespace nessie::streams::sinks
