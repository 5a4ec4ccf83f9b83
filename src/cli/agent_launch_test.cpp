// SPDX-License-Identifier: BSD-3-Clause
#include "agent_launch.hpp"

#include "agent.hpp"

#include "testing/folder_case.hpp"

#include <base/file.hpp>

#include <gtest/gtest.h>

#include <filesystem>

namespace nessie::cli {
namespace {

using Line = std::vector<std::string>;

class AgentLaunch : public FolderCase {
 protected:
  void SetUp() override {
    FolderCase::SetUp();
    make_launchers();
    make_program("aprun");
  }
  Line job(const Line &command) {
    auto words = agents_job(places_, {"agent"}, command, folder_->path(), environment_);
    EXPECT_TRUE(words) << words.error().message;
    return words ? *words : Line{};
  }

  std::vector<ServerPlace> places_ = {{0, "b", false, ""}, {1, "b", false, ""}, {2, "c", false, ""}};
};

TEST_F(AgentLaunch, OpenMpi_GetsAPartForEachServer_AndWhatTheProgramsSaysOfReachingHosts) {
  EXPECT_EQ(job({"mpiexec", "--mca", "plm_rsh_agent", "x", "--mca", "btl", "tcp", "-x", "A=1", "-n", "8", "sim"}),
            (Line{"mpiexec", "--mca", "plm_rsh_agent", "x", "--bind-to", "none", "-n", "1", "--host", "b", "agent", ":",
                  "-n",      "1",     "--host",        "b", "agent",     ":",    "-n", "1", "--host", "c", "agent"}));
  EXPECT_EQ(environment_.get("OMPI_MCA_rmaps_base_oversubscribe"), "1");
  EXPECT_EQ(environment_.get("OMPI_MCA_plm_slurm_args"), "--overlap");
}

TEST_F(AgentLaunch, Hydra_GetsHostsInTheServersOrder) {
  EXPECT_EQ(job({"mpirun", "-launcher-exec", "x", "-n", "8", "sim"}),
            (Line{"mpirun", "-launcher-exec", "x", "-bind-to", "none", "-hosts", "b:1,b:1,c:1", "-n", "3", "agent"}));
}

TEST_F(AgentLaunch, Srun_GetsAFileOfHosts) {
  const auto line = job({"srun", "-n", "8", "sim"});
  EXPECT_EQ(line.front(), "srun");
  EXPECT_EQ(line.back(), "agent");
  EXPECT_EQ(*read_file(environment_.get("SLURM_HOSTFILE").value()), "b\nb\nc\n");
}

TEST_F(AgentLaunch, WithoutALauncher_TheBatchJobsIsTaken) {
  EXPECT_EQ(job({"sim"}).front(), "mpiexec");
  environment_.set("SLURM_JOB_ID", "7");
  EXPECT_EQ(job({"sim"}).front(), "srun");
}

TEST_F(AgentLaunch, UnknownLaunchersAreRefused) {
  std::filesystem::remove(folder_->file("mpiexec"));
  const auto words = agents_job(places_, {"agent"}, {"mpiexec", "sim"}, folder_->path(), environment_);
  EXPECT_EQ(words.code(), Code::kUnsupported);
}

TEST_F(AgentLaunch, ServicesAreFurtherRanksOfTheProgramsJob) {
  const auto near = with_services({"mpiexec", "-n", "4", "sim", "x"}, {{0, "", true, ""}}, {"rank", "agent"},
                                  folder_->path(), environment_, nullptr);
  ASSERT_TRUE(near);
  EXPECT_EQ(*near, (Line{"mpiexec", "-n", "4", "sim", "x", ":", "-n", "1", "rank", "agent"}));
  const auto elsewhere =
      with_services({"mpiexec", "--host", "b:2,c:2", "sim"}, places_, {"rank"}, folder_->path(), environment_, nullptr);
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(Line(elsewhere->begin(), elsewhere->begin() + 6), (Line{"mpiexec", "-n", "4", "--host", "b:2,c:2", "sim"}));
  EXPECT_EQ(elsewhere->size(), 6u + 3 * 6);
  EXPECT_EQ(with_services({"mpiexec", "sim"}, places_, {"rank"}, folder_->path(), environment_, nullptr).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(with_services({"mpirun", "sim"}, places_, {"rank"}, folder_->path(), environment_, nullptr).code(),
            Code::kUnsupported);
  EXPECT_EQ(with_services({"sim"}, places_, {"rank"}, folder_->path(), environment_, nullptr).code(),
            Code::kUnsupported);
}

TEST_F(AgentLaunch, AnAgentIsToldWhatTheRunWasTold) {
  const AgentOptions options{"tcp://a:1",  2,     "auto", "4G",      "logged", "/ssd/log",
                             "/ssd/spill", "yes", "no",   "/boards", "tcp",    "6-7"};
  EXPECT_EQ(
      agent_command("nessie", options),
      (Line{"nessie",   "agent",      "--run",       "tcp://a:1", "--servers",    "2",      "--mode",   "auto",
            "--memory", "4G",         "--boards",    "/boards",   "--durability", "logged", "--log",    "/ssd/log",
            "--spill",  "/ssd/spill", "--fail-fast", "yes",       "--read-back",  "no",     "--listen", "tcp",
            "--cores",  "6-7"}));
  AgentOptions untold;
  untold.run = "tcp://a:1", untold.mode = "auto", untold.memory = "4G", untold.board_directory = "/boards";
  EXPECT_EQ(agent_command("nessie", untold).size(), 12u);
}

TEST_F(AgentLaunch, TheWorldIsSplitOnce) {
  environment_.set("LD_PRELOAD", "tool.so");
  split_world("/lib/libcommsplitter.so", environment_);
  EXPECT_EQ(environment_.get("LD_PRELOAD"), "/lib/libcommsplitter.so:tool.so");
  EXPECT_EQ(environment_.get("NESSIE_COMMSPLITTER"), "variable:NESSIE_RANK");
  environment_.set("NESSIE_COMMSPLITTER", "appnum");
  split_world("/lib/libcommsplitter.so", environment_);
  EXPECT_EQ(environment_.get("LD_PRELOAD"), "/lib/libcommsplitter.so:tool.so");
  EXPECT_EQ(environment_.get("NESSIE_COMMSPLITTER"), "appnum");
}

}  // namespace
}  // namespace nessie::cli
