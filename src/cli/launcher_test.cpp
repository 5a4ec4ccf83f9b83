// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <base/host.hpp>

#include "run_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nessie::cli {
namespace {

class Launcher : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = RunDirectory::make();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    environment_.set("PATH", folder_->path());
  }

  std::string make_program(const std::string &name, const std::string &content) {
    auto path = folder_->file(name);
    std::ofstream(path) << content;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  void make_launcher(const std::string &name, const std::string &real_name) {
    std::filesystem::create_symlink(make_program(real_name, "#!/bin/sh\n"), folder_->file(name));
  }

  std::optional<RunDirectory> folder_;
  Environment environment_;
};

const std::string kOpenMpiProgram = std::string(
                                        "\x7f"
                                        "ELF....libc.so.6") +
                                    '\0' + "libmpi.so.40" + '\0';
const std::string kMpichProgram = std::string(
                                      "\x7f"
                                      "ELF....libc.so.6") +
                                  '\0' + "libmpich.so.12" + '\0';

TEST_F(Launcher, IsKnownByTheFileBehindItsName) {
  make_launcher("mpiexec", "orterun");
  make_launcher("mpirun", "mpiexec.hydra");
  EXPECT_EQ(flavour_of_launcher("mpiexec", environment_), MpiFlavour::kOpenMpi);
  EXPECT_EQ(flavour_of_launcher("mpirun", environment_), MpiFlavour::kMpich);
  EXPECT_EQ(flavour_of_launcher("nothing", environment_), MpiFlavour::kUnknown);
}

TEST_F(Launcher, OfAnotherMpiThanTheProgram_IsAMismatch) {
  make_launcher("mpiexec", "mpiexec.hydra");
  const auto program = make_program("sim", kOpenMpiProgram);
  const auto warning = mismatch({"mpiexec", "-n", "8", program}, environment_);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("Open MPI"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("MPICH"), std::string::npos) << *warning;
}

TEST_F(Launcher, OfTheProgramsOwnMpi_IsNoMismatch) {
  make_launcher("mpiexec", "mpiexec.hydra");
  const auto program = make_program("sim", kMpichProgram);
  EXPECT_FALSE(mismatch({"mpiexec", "-n", "8", program}, environment_));
  EXPECT_FALSE(mismatch({program}, environment_));
}

TEST_F(Launcher, MayUseOtherNodesWhenHostsAreNamed) {
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "-n", "8", "sim"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "--host", "a,b", "sim"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "--host", "localhost:4,b:4", "sim"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "--hostfile", "/absent", "sim"}, environment_));
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "sim", "--host"}, environment_));
  EXPECT_FALSE(may_use_other_nodes({"sim", "-f", "input.nml"}, environment_));
  environment_.set("SLURM_JOB_NUM_NODES", "2");
  EXPECT_TRUE(may_use_other_nodes({"srun", "sim"}, environment_));
}

TEST_F(Launcher, MayUseOtherNodesOfABatchJob) {
  const auto path = folder_->file("nodes");
  environment_.set("PBS_NODEFILE", path);
  std::ofstream(path) << "a\na\n";
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "sim"}, environment_));
  std::ofstream(path) << "a\nb\n";
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "sim"}, environment_));
}

TEST_F(Launcher, HostsThatAreThisOneAreNoOtherNodes) {
  for (const char *list : {"localhost:4", "localhost,127.0.0.1:2", "[::1]:4", "127.0.1.1"})
    EXPECT_FALSE(may_use_other_nodes({"mpiexec", "-host", list, "sim"}, environment_)) << list;
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "-H", nessie::host_name() + ":8", "sim"}, environment_));
}

}  // namespace
}  // namespace nessie::cli
