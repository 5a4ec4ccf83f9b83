// SPDX-License-Identifier: BSD-3-Clause
#include "keep_apart.hpp"

#include "allocation.hpp"
#include "launcher.hpp"
#include "testing/folder_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nessie::cli {
namespace {

using Line = std::vector<std::string>;

class KeepApart : public FolderCase {
 protected:
  void SetUp() override {
    FolderCase::SetUp();
    make_launchers();
  }
  Result<Line> apart(const Line &command) { return keep_apart(program_, {{"c", 8}}, 8, command, environment_); }
  Line kept(const Line &command) {
    const auto line = apart(command);
    EXPECT_TRUE(line) << line.error().message;
    return line ? *line : Line{};
  }

  bool is_open_mpis(const Line &line) {
    return flavour_of_launcher(line[*find_launcher(line, environment_)], environment_) == MpiFlavour::kOpenMpi;
  }

  HostList program_{{"a", 4}, {"b", 0}};
};

TEST_F(KeepApart, OpenMpi_IsGivenAListForEachProgram) {
  EXPECT_EQ(kept({"mpiexec", "-n", "8", "sim", "-H", "5"}),
            (Line{"mpiexec", "--host", "a:4,b:8", "-n", "8", "sim", "-H", "5"}));
  EXPECT_EQ(kept({"mpiexec", "-n", "8", "sim", ":", "-n", "2", "sim"}),
            (Line{"mpiexec", "--host", "a:4,b:8", "-n", "8", "sim", ":", "--host", "a:4,b:8", "-n", "2", "sim"}));
}

TEST_F(KeepApart, OpenMpi_KeepsItsOwnListsWithoutTheServersHosts) {
  EXPECT_EQ(kept({"mpiexec", "--host", "a:2,c:2", "sim", ":", "-n", "1", "-H=b,c", "sim"}),
            (Line{"mpiexec", "--host", "a:2", "sim", ":", "-n", "1", "-H=b:1", "sim"}));
  EXPECT_EQ(apart({"mpiexec", "--host", "c", "sim"}).code(), Code::kInvalidArgument);
}

TEST_F(KeepApart, Hydra_IsGivenOneListInPlaceOfItsOwn) {
  EXPECT_EQ(kept({"mpirun", "-f", "hosts", "-n", "8", "sim", "-f", "input"}),
            (Line{"mpirun", "-hosts", "a:4,b", "-n", "8", "sim", "-f", "input"}));
  EXPECT_EQ(kept({"mpirun", "-hosts=a,b,c", "-n", "8", "sim", ":", "-n", "1", "sim"}),
            (Line{"mpirun", "-hosts", "a:4,b", "-n", "8", "sim", ":", "-n", "1", "sim"}));
}

TEST_F(KeepApart, Srun_ExcludesTheServersNodes) {
  EXPECT_EQ(kept({"srun", "-n", "8", "sim"}), (Line{"srun", "--nodes=2", "--exclude=c", "-n", "8", "sim"}));
  EXPECT_EQ(kept({"srun", "-N2", "sim"}), (Line{"srun", "--exclude=c", "-N2", "sim"}));
  EXPECT_EQ(kept({"srun", "-x", "d", "-N", "2", "sim"}), (Line{"srun", "-x", "d,c", "-N", "2", "sim"}));
}

TEST_F(KeepApart, Srun_ExcludesThemForEachProgram) {
  EXPECT_EQ(kept({"srun", "-n", "8", "sim", ":", "-n", "1", "-x", "d", "sim"}),
            (Line{"srun", "--exclude=c", "-n", "8", "sim", ":", "-n", "1", "-x", "d,c", "sim"}));
}

TEST_F(KeepApart, Srun_LosesTheServersNodesOfItsOwnList) {
  program_ = {{"n1", 4}, {"n2", 4}};
  const auto line = keep_apart(program_, {{"n3", 4}}, 8, {"srun", "--nodelist=n[1-3]", "sim"}, environment_);
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, (Line{"srun", "--nodes=2", "--exclude=n3", "--nodelist=n1,n2", "sim"}));
}

TEST_F(KeepApart, BehindWordsOfAWrapperTheLauncherIsFound) {
  EXPECT_EQ(kept({"env", "A=B", "mpiexec", "sim"}), (Line{"env", "A=B", "mpiexec", "--host", "a:4,b:8", "sim"}));
}

TEST_F(KeepApart, WhereNoLauncherIsSeen_ItSaysWhereToPutNessieRun) {
  EXPECT_EQ(apart({"sh", "job.sh"}).code(), Code::kUnsupported);
  EXPECT_NE(apart({"sh", "job.sh"}).error().message.find("put `nessie run` before it there"), std::string::npos);
  EXPECT_EQ(apart({"mpiexec.vendor", "sim"}).code(), Code::kUnsupported);
}

TEST_F(KeepApart, WhereNoHostIsForServersOnly_NothingChanges) {
  const Line command{"sh", "job.sh"};
  EXPECT_EQ(*keep_apart(program_, {}, 8, command, environment_), command);
}

/// Whatever words a command has: what is kept of it is the same but for the launcher's words on hosts, and no longer
/// names host c to Open MPI.
TEST_F(KeepApart, IsSoundForEveryCommand) {
  const Line words{"mpiexec", "mpirun", "srun", "sim", ":",  "-n", "8",  "--host",
                   "-H=c,b",  "a,c",    "c",    "-w",  "-f", "-x", "--", "-"};
  std::minstd_rand random(20);
  int kept = 0;
  for (int trial = 0; trial < 8'000; ++trial) {
    Line command;
    for (auto length = 1 + random() % 9; length > 0; --length) command.push_back(words[random() % words.size()]);
    const auto line = apart(command);
    if (!line || !is_open_mpis(*line)) continue;
    const auto hosts = find_allocation(*line, environment_);
    EXPECT_TRUE(!hosts || std::ranges::find(hosts->hosts, "c", &JobHost::name) == hosts->hosts.end())
        << testing::PrintToString(command) << testing::PrintToString(*line);
    ++kept;
  }
  EXPECT_GT(kept, 500);
}

}  // namespace
}  // namespace nessie::cli
