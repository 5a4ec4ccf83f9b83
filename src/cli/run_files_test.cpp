// SPDX-License-Identifier: BSD-3-Clause
#include "run_files.hpp"

#include "log_folder.hpp"
#include "summary.hpp"
#include "testing/folder_case.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace nessie::cli {
namespace {

using staging::Durability;
using staging::FileStage;

staging::FileState state(const std::string &path, FileStage stage, std::uint64_t acknowledged, std::uint64_t pending) {
  return {{path, 0, "", acknowledged, acknowledged - pending, {}}, Durability::kLogged, stage, pending};
}

TEST(RunFiles, OfServers_AreWhatTheirPartsAre) {
  RunFiles all;
  auto lost = state("/c", FileStage::kClosed, 100, 0);
  lost.report.nc_error = -61, lost.report.message = "full", lost.report.bytes_in_file = 60,
  lost.report.missing = {"t[0]"};
  auto stuck = state("/b", FileStage::kClosing, 100, 40);
  stuck.report.message = "full";
  all.add({{state("/a", FileStage::kOpen, 10, 0), stuck, lost}, 2});
  all.add({{state("/a", FileStage::kOpen, 10, 0), state("/b", FileStage::kClosed, 50, 0),
            state("/c", FileStage::kOpen, 1, 1)},
           1});
  EXPECT_EQ(all.files["/a"].condition, FileCondition::kComplete);
  EXPECT_TRUE(all.files["/a"].is_open);
  EXPECT_EQ(all.files["/a"].bytes_in_file, 20u);
  EXPECT_EQ(all.files["/b"].condition, FileCondition::kDraining);
  EXPECT_EQ(all.files["/b"].bytes_in_file, 110u);
  EXPECT_EQ(all.files["/c"].condition, FileCondition::kIncomplete);
  EXPECT_EQ(all.exit_code(), kExitDataLost);
  const auto text = describe(all);
  EXPECT_TRUE(text.starts_with("6 files: 4 complete, 1 draining, 1 incomplete; ")) << text;
  EXPECT_LT(text.find("incomplete   60 B of 101 B  logged      /c (open): full\n  missing: t[0]\n"),
            text.find("/b: full"))
      << text;
  EXPECT_NE(text.find("complete     20 B  logged      /a (open)\n"), std::string::npos) << text;
  EXPECT_EQ(to_json(all)["files"][1]["state"], "draining");
  EXPECT_EQ(to_json(all)["others_complete"], 3);
}

TEST(RunFiles, AnOpenFileWhoseSyncIsTriedAgainIsOnItsWay) {
  RunFiles all;
  auto waits = state("/a", FileStage::kOpen, 100, 0);
  waits.report.message = "full";
  all.add({{waits}, 0});
  EXPECT_EQ(all.files["/a"].condition, FileCondition::kDraining);
}

TEST(RunFiles, Many_AreToldBrieflyButAllOfThemAsJson) {
  RunFiles all;
  for (int i = 0; i < 10000; ++i) all.add(RunFile{"/data/" + std::to_string(i)});
  const auto text = describe(all);
  EXPECT_LT(std::ranges::count(text, '\n'), 30);
  EXPECT_NE(text.find("and 9980 more"), std::string::npos) << text;
  EXPECT_EQ(to_json(all)["files"].size(), 10000u);
  EXPECT_EQ(all.exit_code(), 0);
}

TEST(RunFiles, WhoDoesNotAnswerIsNamed) {
  RunFiles all;
  all.silent = {"tcp://b:1: no answer in time"};
  EXPECT_EQ(all.exit_code(), 1);
  EXPECT_NE(describe(all).find("tcp://b:1"), std::string::npos);
}

TEST(RunFiles, LogsOfOneFolderAreToBeFinishedTogether) {
  RunFiles all;
  all.logs = {"/log/a/server.0", "/log/a/server.1", "/log/b/server.1"};
  const auto text = describe(all);
  EXPECT_NE(text.find("`nessie recover /log/a` puts what is in /log/a into"), std::string::npos) << text;
  EXPECT_EQ(text.find("/log/a/server"), std::string::npos) << text;
  EXPECT_NE(text.find("`nessie recover /log/b/server.1` puts"), std::string::npos) << text;
  EXPECT_EQ(to_json(all)["logs"].size(), 3u);
}

class RunFilesLeft : public FolderCase {};

TEST_F(RunFilesLeft, AReportTellsOfAll_AndALedgerThatIsNoneIsNamed) {
  make_file("server.0.report", R"({"files": [{"path": "/a", "bytes_acknowledged": 8, "bytes_in_file": 8},
    {"path": "/b", "bytes_acknowledged": 8, "bytes_in_file": 3}],
    "failures": [{"path": "/b", "nc_error": -61, "message": "full", "bytes_acknowledged": 8, "bytes_in_file": 3}]})");
  make_file("server.1.ledger", "nonsense");
  RunFiles all;
  add_left(folder_->path(), all);
  EXPECT_EQ(all.files["/a"].condition, FileCondition::kComplete);
  EXPECT_EQ(all.files["/b"].condition, FileCondition::kIncomplete);
  EXPECT_EQ(all.files["/b"].bytes_acknowledged, 8u);
  ASSERT_EQ(all.unreadable.size(), 1u);
  EXPECT_NE(all.unreadable[0].find("staging server 1"), std::string::npos);
  EXPECT_FALSE(add_told(folder_->file("server.1.ledger"), all));
}

TEST_F(RunFilesLeft, ItIsKnownWhereTheLogsAre) {
  EXPECT_EQ(logged_in(folder_->path()), "");
  const auto log = LogFolder::choose(folder_->path(), "logged");
  ASSERT_TRUE(log.ok());
  log->note_in(folder_->path());
  EXPECT_EQ(logged_in(folder_->path()), log->path());
}

}  // namespace
}  // namespace nessie::cli
