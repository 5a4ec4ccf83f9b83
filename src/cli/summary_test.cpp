// SPDX-License-Identifier: BSD-3-Clause
#include "summary.hpp"
#include "run_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace nessie::cli {
namespace {

staging::FileReport file(const std::string &path, std::uint64_t acknowledged, std::uint64_t in_file) {
  staging::FileReport report;
  report.path = path;
  report.bytes_acknowledged = acknowledged;
  report.bytes_in_file = in_file;
  return report;
}

RunRecord two_servers() {
  RunRecord record;
  record.command = {"sim"};
  record.mode = "caching";
  record.memory = "1G";
  record.servers = 2;
  staging::ReportResult report;
  report.bytes_pulled = report.bytes_drained = 1000;
  report.writes = 2;
  report.busy_pull_s = 0.5;
  report.busy_drain_s = 2;
  report.drained = {file("/a.nc", 1000, 1000)};
  report.first_write_s = 10;
  report.last_drain_s = 14;
  record.reports = {report, report};
  record.reports[1].first_write_s = 12;
  record.reports[1].last_drain_s = 15;
  return record;
}

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(Summary, AddsTheServersUp) {
  const auto totals = add_up(two_servers());
  EXPECT_EQ(totals.all.bytes_pulled, 2000u);
  EXPECT_EQ(totals.all.writes, 4u);
  EXPECT_DOUBLE_EQ(totals.perceived_bytes_per_s, 4000);
  EXPECT_DOUBLE_EQ(totals.durable_bytes_per_s, 1000);
  EXPECT_DOUBLE_EQ(totals.durable_s, 5);
  ASSERT_EQ(totals.all.drained.size(), 1u);
  EXPECT_EQ(totals.all.drained[0].bytes_in_file, 2000u);
}

TEST(Summary, WhenAllIsWell_TellsNoTroubleAndReturnsTheProgramsCode) {
  auto record = two_servers();
  EXPECT_EQ(describe_trouble(record), "");
  EXPECT_EQ(exit_code(record), 0);
  record.program_exit_code = 3;
  EXPECT_EQ(exit_code(record), 3);
}

TEST(Summary, OfAFailedDrain_NamesFileRangesBytesAndError) {
  auto record = two_servers();
  auto failure = file("/full/b.nc", 4096, 1024);
  failure.message = "No space left on device";
  failure.missing = {"temperature[0:63,0:63]"};
  record.reports[0].failures = {failure};
  const auto text = describe_trouble(record);
  EXPECT_TRUE(contains(text, "/full/b.nc")) << text;
  EXPECT_TRUE(contains(text, "3072 bytes")) << text;
  EXPECT_TRUE(contains(text, "No space left on device")) << text;
  EXPECT_TRUE(contains(text, "temperature[0:63,0:63]")) << text;
  EXPECT_EQ(exit_code(record), kExitDataLost);
}

TEST(Summary, OfAKilledServer_SaysSoAndDoesNotHideTheProgramsFailure) {
  auto record = two_servers();
  record.broken_servers = {"staging server 1 was killed by signal 9 (Killed)"};
  record.broken_at_work = record.broken_with_files = 1;
  EXPECT_TRUE(contains(describe_trouble(record), "killed by signal 9"));
  EXPECT_EQ(exit_code(record), kExitDataLost);
  record.program_exit_code = 5;
  EXPECT_EQ(exit_code(record), 5);
}

TEST(Summary, ListsManyRangesBrieflyButAllOfThemAsJson) {
  auto record = two_servers();
  auto failure = file("/b.nc", 100, 0);
  for (int i = 0; i < 20; ++i) failure.missing.push_back("v[" + std::to_string(i) + "]");
  record.lost = {failure};
  EXPECT_TRUE(contains(describe_trouble(record), "12 more ranges"));
  EXPECT_EQ(to_json(record)["failures"][0]["missing"].size(), 20u);
}

TEST(Summary, OfServersThatWereStartedAgain_SaysSo_AndIsNotTroubled) {
  auto record = two_servers();
  record.placement.servers = {{"c", "shm://x/y", "", {"was killed"}}, {"c", "shm://x/z", "", {"was killed", "failed"}}};
  EXPECT_TRUE(contains(describe_work(record),
                       "staging server 0 was started again, and went on from its log; what was done before"));
  EXPECT_TRUE(contains(describe_work(record), "staging server 1 was started again 2 times"));
  EXPECT_EQ(describe_trouble(record), "");
  EXPECT_EQ(exit_code(record), 0);
}

TEST(Summary, WhereALogIsLeft_SaysWhereItIsAndWhatToDo) {
  auto record = two_servers();
  record.kept_log = "/scratch/nessie-log.1";
  EXPECT_TRUE(contains(describe_trouble(record), "`nessie recover /scratch/nessie-log.1`"));
  EXPECT_EQ(to_json(record)["log"], "/scratch/nessie-log.1");
  EXPECT_EQ(exit_code(record), kExitDataLost);
}

TEST(Summary, AsJson_SaysWhereTheServersWere) {
  auto record = two_servers();
  record.placement = {"node:1", "launcher", {{"c", "tcp://10.0.0.3:7000", "6-7", {"was killed", "exited with 2"}}, {}}};
  const auto placement = to_json(record)["placement"];
  EXPECT_EQ(placement, nlohmann::json::parse(R"({"place": "node:1", "started": "launcher", "servers": [
    {"index": 0, "host": "c", "cores": "6-7", "url": "tcp://10.0.0.3:7000", "restarts": 2},
    {"index": 1, "host": null, "cores": null, "url": null, "restarts": 0}]})"));
}

TEST(Summary, WhenNothingWasStaged_SaysWhyFromWhatHappened) {
  RunRecord record;
  record.preload_library = "/opt/nessie/lib/libnessie_pnetcdf.so";
  EXPECT_TRUE(contains(describe_work(record), "no process of the program came to the servers"));
  record.command = {"mpiexec", "-x", "LD_PRELOAD=/opt/tool.so", "./sim"};
  EXPECT_TRUE(contains(describe_work(record),
                       "LD_PRELOAD was replaced by what starts the program ('-x LD_PRELOAD=/opt/tool.so'): add "
                       "':/opt/nessie/lib/libnessie_pnetcdf.so' to it"));
  const std::vector<std::string> passes_ours_on = {"mpiexec", "-x", "LD_PRELOAD", "./sim"};
  for (const auto &harmless : {passes_ours_on, {"./sim", "LD_PRELOAD=/opt/tool.so"}}) {
    record.command = harmless;
    EXPECT_TRUE(contains(describe_work(record), "no process of the program came to the servers"));
  }
  record.command = {"mpiexec", "/usr/bin/env", "A=1", "LD_PRELOAD=/opt/tool.so", "./sim"};
  EXPECT_TRUE(contains(describe_work(record), "what starts the program ('LD_PRELOAD=/opt/tool.so')"));
  record.notes = {"LD_PRELOAD was replaced by 'tool.so' for ./sim"};
  EXPECT_TRUE(
      contains(describe_work(record), "nothing was staged: LD_PRELOAD was replaced by 'tool.so' for ./sim: if "));
  record.notes.emplace_back("the program brings its own MPI");
  EXPECT_TRUE(contains(describe_work(record), "nothing was staged: the program brings its own MPI\n"));
  EXPECT_TRUE(contains(describe_work(record), "nessie: LD_PRELOAD was replaced by 'tool.so' for ./sim\n"));
  record.reports.emplace_back().clients = 4;
  EXPECT_TRUE(contains(describe_work(record), "came to the servers, but moved no data"));
  record.reports[0].native = {"a.nc: it is a netCDF-4 file"};
  EXPECT_TRUE(contains(describe_work(record), "nothing was staged: all files went native"));
}

TEST(Summary, DoesNotSayThatAHelpersFilesWereNotStaged) {
  auto record = two_servers();
  record.notes = {"LD_PRELOAD was emptied for /usr/bin/hostname", "libpnetcdf.so.99 is another PnetCDF"};
  EXPECT_TRUE(contains(describe_work(record), "\nnessie: LD_PRELOAD was emptied for /usr/bin/hostname\n"));
  EXPECT_TRUE(contains(describe_work(record), "\nnessie: not staged: libpnetcdf.so.99 is another PnetCDF\n"));
}

TEST(Summary, WhenAServerEndedBeforeAnythingCame_SaysSo) {
  RunRecord record;
  record.broken_servers = {"staging server 0 was killed by signal 9 (Killed)"};
  EXPECT_TRUE(
      contains(describe_work(record), "nothing was staged: a staging server ended before it had stored anything"));
  EXPECT_EQ(exit_code(record), 0);
}

TEST(Summary, WhenAServerEndedThatHadFiles_SaysNoMoreThanIsKnown) {
  RunRecord record;
  record.broken_servers = {"staging server 0 was killed by signal 9 (Killed)"};
  record.broken_at_work = 1;
  record.untold_natives = 2;
  record.reports.emplace_back().clients = 4;
  const auto text = describe_work(record);
  EXPECT_TRUE(contains(text, "nessie: what was staged is not known\n")) << text;
  EXPECT_TRUE(contains(text, "2 files more, which that server would have told")) << text;
  EXPECT_FALSE(contains(text, "nothing was staged")) << text;
  EXPECT_EQ(exit_code(record), 0);
  record.broken_with_files = 1;
  EXPECT_EQ(exit_code(record), kExitDataLost);
}

TEST(Summary, WhenFilesHaveNoDataOfTheProgram_SaysSo) {
  RunRecord record;
  record.reports.emplace_back().clients = 4;
  record.reports[0].files = 1;
  EXPECT_TRUE(contains(describe_work(record), "opened or created files for the program, which moved no data itself"));
}

TEST(RunDirectory, IsPrivateAndGoesWithItsOwner) {
  std::string path;
  {
    auto folder = RunDirectory::make();
    ASSERT_TRUE(folder);
    path = folder->path();
    std::ofstream(folder->file("server.0.url")) << "shm://x\n";
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace nessie::cli
