// SPDX-License-Identifier: BSD-3-Clause
// What travels, byte for byte: the bytes of version 4 stay what they are.
#include <staging_rpc.hpp>

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace staging {
namespace {

template <class T> void expect_bytes(const T &value, const std::string &hex) {
  const auto bytes = xdr::encode(value);
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  EXPECT_EQ(text, hex);
  const auto decoded = xdr::decode<T>(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, value);
}

TEST(StagingWire, ProgramAndVersionAreThese) {
  EXPECT_EQ(STAGING::kProgram, 0x20004E01U);
  EXPECT_EQ(STAGING::CURRENT::kVersion, 4U);
}

TEST(StagingWire, AGreetingIsThis) {
  expect_bytes(HelloArgs{4, "model", 5, {"a"}},
               "00000004000000056d6f64656c00000000000000000000050000000100000001"
               "61000000");
  expect_bytes(HelloResult{4, 1, 2, Mode::kAuto, "1.14", true, true},
               "0000000400000001000000020000000200000004312e3134"
               "0000000100000001");
}

TEST(StagingWire, AJobIsNamedLikeThis) { expect_bytes(Text("job17"), "000000056a6f623137000000"); }

TEST(StagingWire, AFileIsOpenedAndClosedLikeThis) {
  expect_bytes(
      CreateArgs{7, "/a.nc", 5, {{"k", "v"}}, {9, {1, 2}, -1, 1000}, 4, Durability::kLogged},
      "0000000000000007000000052f612e6e630000000000000500000001000000016b00000000000001760000000000000000000009"
      "00000000000000010000000000000002ffffffffffffffff000003e80000000400000003");
  expect_bytes(
      HeaderResult{-33, {std::byte{1}}, 2, 3, {{"k", "v"}}, {1, 2}},
      "ffffffdf00000001010000000000000000000002000000000000000300000001000000016b000000000000017600000000000000"
      "000000010000000000000002");
  expect_bytes(FileArgs{7, -1, Closing::kIfSoon, {1, 2}},
               "0000000000000007ffffffffffffffff0000000200000000000000010000000000000002");
  expect_bytes(SettleArgs{{1, 2}, "/a.nc", true}, "00000000000000010000000000000002000000052f612e6e6300000000000001");
}

TEST(StagingWire, ADefinitionIsThis) {
  const Definition units{
      DefinitionKind::kPutAtt, -1, 2, 3, "units", {}, {1}, {std::byte{'K'}, std::byte{'g'}, std::byte{'m'}}};
  expect_bytes(
      EndDefArgs{7, {units}, true, 1, 2, 3, 4, 5, 6},
      "00000000000000070000000100000005ffffffff00000002000000000000000300000005756e6974730000000000000000000001"
      "00000001000000034b676d000000000100000000000000010000000000000002000000000000000300000000000000040000"
      "0000000000050000000000000006");
}

TEST(StagingWire, ATransferIsThis) {
  expect_bytes(TransferArgs{7, 6, 5, {4, 3}, 2, true, true, {std::byte{1}}, 8, 9, 10, 11, true, 12},
               "0000000000000007000000000000000600000000000000050000000000000004000000000000000300000000000000020000"
               "00010000000100000001010000000000000000000008"
               "00000009000000000000000a000000000000000b000000010000000c");
}

TEST(StagingWire, AReportIsThis) {
  expect_bytes(NativeNote{"/a.nc", "why", true},
               "000000052f612e6e630000000000000377687900"
               "00000001");
  ReportResult report;
  report.bytes_pulled = 1, report.memory_high_bytes = 2, report.busy_pull_s = 0.5, report.bytes_read = 5;
  report.drained = {{"/a.nc", -61, "full", 3, 2, {"t[0]"}}};
  report.native = {"n"}, report.left_native = 4, report.why_left = "w";
  report.stuck = {{"/b.nc", "full", 0.5, 2}}, report.bytes_spilled = 6, report.spill_bytes = 7;
  report.restarts = 8, report.restarted_at = 9, report.damaged_pages = 10;
  expect_bytes(report,
               "0000000000000001" + std::string(7 * 16, '0') + "00000000000000023fe0000000000000" +
                   std::string(4 * 16, '0') +
                   "00000001000000052f612e6e63000000ffffffc30000000466756c6c00000000000000030000000000000002"
                   "0000000100000004745b305d0000000000000001000000016e000000000000000000000400000001770000000000000000"
                   "000005"
                   "00000001000000052f622e6e63000000"
                   "0000000466756c6c3fe00000000000004000000000000000"
                   "00000000000000060000000000000007"
                   "000000080000000000000009000000000000000a");
}

TEST(StagingWire, TheStateOfFilesIsThis) {
  expect_bytes(FilesResult{{{{"/a.nc", -61, "full", 3, 2, {"t[0]"}}, Durability::kLogged, FileStage::kClosing, 1}}, 5},
               "00000001000000052f612e6e63000000ffffffc30000000466756c6c00000000000000030000000000000002"
               "0000000100000004745b305d"
               "00000003000000010000000000000001"
               "0000000000000005");
}

TEST(StagingWire, WhatIsCompleteIsThis) {
  const Mark mark{1, 2, 3, 4, true, {5}, {{6, 7}}};
  const std::string bytes =
      "0000000000000001000000020000000000000003000000000000000400000001"
      "0000000100000005"
      "0000000100000000000000060000000000000007";
  expect_bytes(mark, bytes);
  expect_bytes(MarkArgs{9, mark}, "0000000000000009" + bytes);
  expect_bytes(WatchArgs{1, 2, 3}, "0000000000000001000000000000000200000003");
  expect_bytes(WatchResult{1,
                           2,
                           true,
                           {{7, "/a.nc", {1, 2}, FileStage::kClosed, true, 9, true, 3, "full", 4, {mark}}},
                           {{"/b.nc", "why", false}}},
               "0000000000000001000000000000000200000001"
               "000000010000000000000007000000052f612e6e63000000000000000000000100000000000000020000000200000001"
               "00000000000000090000000100000003"
               "0000000466756c6c0000000000000004"
               "00000001" +
                   bytes + "00000001000000052f622e6e630000000000000377687900" + "00000000");
}

TEST(StagingWire, WhoLooksOnReadsLikeThis) {
  expect_bytes(HeaderOf{true, -33, {std::byte{1}}}, "00000001ffffffdf0000000101000000");
  expect_bytes(MarkedReadArgs{7, 1, {2, 3}, 4, 5, {std::byte{6}}},
               "000000000000000700000001000000000000000200000000000000030000000000000004000000050000000106000000");
  expect_bytes(MarkedReadResult{MarkedState::kMarkedInFile, -1, 2, {std::byte{3}}},
               "00000001ffffffff00000000000000020000000103000000");
}

}  // namespace
}  // namespace staging
