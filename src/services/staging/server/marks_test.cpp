// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/marks.hpp>

#include <gtest/gtest.h>

namespace staging {
namespace {

constexpr std::int64_t kExtent = 10;

class MarksTest : public ::testing::Test {
 protected:
  /// With a fixed variable, and one of records.
  std::shared_ptr<MarkedFile> open(FileToken token, std::uint64_t inode = 1, std::int64_t born_ns = 5) {
    auto file = marks_.open(token, "/f" + std::to_string(token), {1, inode}, born_ns, token);
    marks_.begin_data_mode(*file, true, {{false, kExtent, {}}, {true, kExtent, {}}});
    return file;
  }
  void write(MarkedFile &file, int varid, std::int64_t first, std::int64_t end, std::uint64_t call) {
    const Part part{varid, 1, {first, end}};
    marks_.note_written(file, {&part, 1}, call);
  }
  void mark(MarkedFile &file, std::uint64_t number, std::int64_t records) {
    marks_.mark(file, {number, file.definition, 0, records, false, {}, {{number, number}}});
  }
  static Bytes record(std::int64_t number) { return PieceList(Piece{1, {number, 0}, {1, kExtent}, {}}).bytes(); }
  static Bytes fixed() { return PieceList(Piece{0, {0}, {kExtent}, {}}).bytes(); }

  int changes_ = 0;
  Marks marks_{[this] { ++changes_; }};
};

TEST_F(MarksTest, WhoComesLateHearsOfAllThatThereIs) {
  const auto file = open(1);
  mark(*file, 1, 1);
  mark(*file, 2, 2);
  const auto all = marks_.since({});
  ASSERT_EQ(all.files.size(), 1U);
  EXPECT_EQ(all.files[0].path, "/f1");
  ASSERT_EQ(all.files[0].marks.size(), 2U);
  EXPECT_EQ(all.files[0].marks[1].records, 2);
  const WatchArgs seen{all.incarnation, all.seen, 0};
  EXPECT_FALSE(marks_.has_changed(seen));
  mark(*file, 3, 3);
  ASSERT_TRUE(marks_.has_changed(seen));
  const auto more = marks_.since(seen);
  ASSERT_EQ(more.files.size(), 1U);
  ASSERT_EQ(more.files[0].marks.size(), 1U);
  EXPECT_EQ(more.files[0].marks[0].number, 3U);
}

TEST_F(MarksTest, WhoHasSeenAnotherServerHearsOfAll) {
  const auto file = open(1);
  const auto all = marks_.since({});
  EXPECT_TRUE(marks_.has_changed({all.incarnation + 1, all.seen, 0}));
  EXPECT_EQ(marks_.since({all.incarnation, all.seen + 100, 0}).files.size(), 1U);
}

TEST_F(MarksTest, ManyChangesComeInParts) {
  const auto file = open(1);
  constexpr std::uint64_t kMarks = 3 * Marks::kMostAtOnce;
  for (std::uint64_t number = 1; number <= kMarks; ++number) mark(*file, number, static_cast<std::int64_t>(number));
  WatchArgs seen;
  std::uint64_t next = 1;
  while (marks_.has_changed(seen)) {
    const auto some = marks_.since(seen);
    seen = {some.incarnation, some.seen, 0};
    for (const auto &each : some.files)
      for (const auto &one : each.marks) EXPECT_EQ(one.number, next++);
  }
  EXPECT_EQ(next, kMarks + 1);
}

TEST_F(MarksTest, AMarkOfAnotherDataModeIsDropped) {
  const auto file = open(1);
  marks_.mark(*file, {1, file->definition + 1, 0, 1, false, {}, {}});
  EXPECT_EQ(marks_.marks(), 0U);
}

TEST_F(MarksTest, OldMarksGo_AndTheirNumbersTellThat) {
  const auto file = open(1);
  for (std::uint64_t number = 1; number <= Marks::kMostMarks + 7; ++number) mark(*file, number, 1);
  EXPECT_EQ(marks_.marks(), Marks::kMostMarks);
  EXPECT_EQ(file->marks.size(), Marks::kMostMarks);
  EXPECT_EQ(marks_.since({}).files.at(0).marks.at(0).number, 8U);
}

TEST_F(MarksTest, FilesThatWereClosedLongAgoAreForgotten) {
  for (FileToken token = 1; token <= Marks::kMostClosed + 1; ++token) {
    const auto file = open(token, token);
    mark(*file, 1, 1);
    marks_.note_closed(*file, "", 1);
  }
  EXPECT_EQ(marks_.find(1), nullptr);
  EXPECT_NE(marks_.find(2), nullptr);
  EXPECT_EQ(marks_.marks(), Marks::kMostClosed);
}

TEST_F(MarksTest, WhatIsWrittenSinceIsKnownForEachRecord) {
  const auto file = open(1);
  write(*file, 1, 0, 2 * kExtent, 1);
  write(*file, 1, 2 * kExtent, 3 * kExtent, 2);
  write(*file, 0, 0, kExtent, 3);
  const auto then = moment_of(file->definition, 1);
  EXPECT_FALSE(file->was_overwritten(record(1), then));
  EXPECT_TRUE(file->was_overwritten(record(2), then));
  EXPECT_TRUE(file->was_overwritten(fixed(), then));
  EXPECT_FALSE(file->was_overwritten(fixed(), moment_of(file->definition, 3)));
}

TEST_F(MarksTest, CallsAreCountedAnewInEachDataMode) {
  const auto file = open(1);
  write(*file, 1, 0, kExtent, 9);
  const auto then = moment_of(file->definition, 9);
  marks_.begin_data_mode(*file, true, {{false, kExtent, {}}, {true, kExtent, {}}, {false, 1, {}}});
  EXPECT_FALSE(file->was_overwritten(record(0), then));
  write(*file, 1, 0, kExtent, 1);
  EXPECT_TRUE(file->was_overwritten(record(0), then));
  EXPECT_FALSE(file->was_overwritten(record(0), moment_of(file->definition, 1)));
}

TEST_F(MarksTest, WhatAnotherHandleWritesIsOverwritten) {
  const auto first = open(1);
  write(*first, 1, 0, 2 * kExtent, 1);
  const auto then = moment_of(first->definition, 1);
  const auto second = open(2);
  write(*second, 1, kExtent, 2 * kExtent, 1);
  EXPECT_FALSE(first->was_overwritten(record(0), then));
  EXPECT_TRUE(first->was_overwritten(record(1), then));
}

TEST_F(MarksTest, OfAFileThatIsCreatedOverNothingIsLeft) {
  const auto first = open(1), other = open(3, 2);
  const auto second = open(2);
  marks_.note_created(second->state.identity, 2);
  EXPECT_TRUE(first->was_overwritten(record(0), kAlwaysLater));
  EXPECT_FALSE(second->was_overwritten(record(0), 1));
  EXPECT_FALSE(other->was_overwritten(record(0), 1));
}

TEST_F(MarksTest, WhenAFileWasCreatedIsToldOfEachHandleOnIt_LaterForEachThatIsMadeAnew) {
  const auto opened = open(1);
  EXPECT_EQ(opened->state.created_ns, 0);
  const auto first = open(2);
  marks_.note_created(first->state.identity, 2);
  EXPECT_GT(first->state.created_ns, 0);
  const auto second = open(3);
  marks_.note_created(second->state.identity, 3);
  EXPECT_GT(second->state.created_ns, first->state.created_ns);
  EXPECT_EQ(open(4)->state.created_ns, second->state.created_ns);
  EXPECT_EQ(open(5, 2)->state.created_ns, 0);
  EXPECT_EQ(opened->state.created_ns, 0);
}

TEST_F(MarksTest, WhoseProcessHasEndedIsToldOfFilesThatAreClosedToo) {
  const auto file = open(1), other = open(2, 2);
  marks_.note_closed(*file, "", 1);
  const auto all = marks_.since({});
  marks_.note_left(1);
  const auto news = marks_.since({all.incarnation, all.seen, 0});
  ASSERT_EQ(news.files.size(), 1U);
  EXPECT_EQ(news.files[0].file, 1U);
  EXPECT_TRUE(news.files[0].is_left);
}

TEST_F(MarksTest, AFileThatHasTheInodeOfOneThatIsGoneIsAnother) {
  const auto first = open(1, 1, 5);
  marks_.note_closed(*first, "", 1);
  (void)open(2, 1, 6);
  EXPECT_TRUE(first->was_overwritten(record(0), kAlwaysLater));
}

TEST_F(MarksTest, ARecordThatIsFilledBeforeAMarkIsLikeAnyOther) {
  const auto file = open(1);
  mark(*file, 1, 2);
  marks_.note_filled(*file, 1, 2);
  EXPECT_FALSE(file->was_overwritten(record(2), 0));
  marks_.note_filled(*file, 1, 1);
  EXPECT_TRUE(file->was_overwritten(record(1), moment_of(9, 9)));
  marks_.note_filled(*file, 7, 0);
  marks_.note_filled(*file, -1, 0);
}

TEST_F(MarksTest, WhatIsNoListOfPiecesIsNotRead) {
  const auto file = open(1);
  EXPECT_TRUE(file->was_overwritten(Bytes(3, std::byte{0xFF}), kAlwaysLater));
  EXPECT_TRUE(file->was_overwritten(PieceList(Piece{9, {0}, {1}, {}}).bytes(), kAlwaysLater));
  EXPECT_FALSE(file->was_overwritten({}, 0));
}

TEST_F(MarksTest, FilesThatWentNativeAreTold) {
  for (std::size_t i = 0; i <= Marks::kMostNative; ++i) marks_.note_native({"/n" + std::to_string(i), "why", false});
  WatchArgs seen;
  const auto first = marks_.since(seen);
  ASSERT_FALSE(first.native.empty());
  EXPECT_EQ(first.native[0].path, "/n1");
}

TEST_F(MarksTest, TheEndIsToldWhenAllElseWas) {
  const auto file = open(1);
  for (std::uint64_t number = 1; number <= Marks::kMostAtOnce; ++number) mark(*file, number, 1);
  marks_.end();
  const auto first = marks_.since({});
  EXPECT_FALSE(first.is_ending);
  const auto rest = marks_.since({first.incarnation, first.seen, 0});
  EXPECT_TRUE(rest.is_ending);
  EXPECT_TRUE(marks_.has_changed({rest.incarnation, rest.seen, 0}));
}

}  // namespace
}  // namespace staging
