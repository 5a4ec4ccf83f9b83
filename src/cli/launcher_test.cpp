// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <base/host.hpp>

#include "other_nodes.hpp"
#include "testing/folder_case.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nessie::cli {
namespace {

using Launcher = FolderCase;

std::string program_linked_to(const std::string &library) {
  using namespace std::string_literals;
  return "\177ELF....libc.so.6\0"s + library + '\0';
}
const std::string kOpenMpiProgram = program_linked_to("libmpi.so.40"),
                  kMpichProgram = program_linked_to("libmpich.so.12");

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

TEST_F(Launcher, TheProgramsOwnWordsNameNoHosts) {
  make_launcher("mpiexec", "orterun");
  make_launcher("mpirun", "mpiexec.hydra");
  const auto sim = make_program("sim", kOpenMpiProgram);
  make_program("ssh");
  make_program("numactl");
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "-n", "1", "-x", "FOO=1", "sim", "-H", "5"}, environment_));
  EXPECT_FALSE(may_use_other_nodes({"sim", "--host", "a,b"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "-n", "1", "sim", "-H", "5", ":", "-host", "b", "sim"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"numactl", "-C", "0", "mpiexec", "--host", "a,b", sim}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "--mca", "plm_rsh_agent", "ssh", "-H", "a,b", "sim"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpirun", "-launcher", "ssh", "-hosts=a,b", "sim"}, environment_));
}

TEST_F(Launcher, KnowsEverySpellingOfHosts) {
  const auto here = folder_->file("here"), there = folder_->file("there");
  std::ofstream(here) << "localhost slots=4\n";
  std::ofstream(there) << "localhost slots=4\nb slots=4\n";
  for (const char *option : {"-f", "-hostfile", "--hostfile", "-machinefile", "-default-hostfile"}) {
    EXPECT_FALSE(may_use_other_nodes({"mpiexec", option, here, "sim"}, environment_)) << option;
    EXPECT_TRUE(may_use_other_nodes({"mpiexec", option, there, "sim"}, environment_)) << option;
  }
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "--hostfile=" + there, "sim"}, environment_));
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "--hosts", "a,b", "sim"}, environment_));
  for (const char *variable : {"HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile", "PE_HOSTFILE"}) {
    auto environment = environment_;
    environment.set(variable, here);
    EXPECT_FALSE(may_use_other_nodes({"sh", "job.sh"}, environment)) << variable;
    environment.set(variable, there);
    EXPECT_TRUE(may_use_other_nodes({"sh", "job.sh"}, environment)) << variable;
  }
}

TEST_F(Launcher, SrunMayUseOtherNodesUnlessTheJobHasOne) {
  EXPECT_TRUE(may_use_other_nodes({"srun", "-n", "4", "sim"}, environment_));
  environment_.set("SLURM_JOB_NUM_NODES", "1");
  EXPECT_FALSE(may_use_other_nodes({"srun", "-n", "4", "sim"}, environment_));
  environment_.set("SLURM_HET_SIZE", "2");  // the other component has nodes of its own
  EXPECT_TRUE(may_use_other_nodes({"srun", "-n", "4", "sim"}, environment_));
}

TEST_F(Launcher, OfOpenMpi4_CarriesVariablesThoughItIsToldOfOthersByX) {
  make_launcher("mpiexec", "orterun");
  std::vector<std::string> command = {"mpiexec", "--host", "a,b", "-x", "FOO", "sim"};
  carry_to_other_nodes({"A", "B"}, command, environment_);
  EXPECT_EQ(environment_.get("OMPI_MCA_mca_base_env_list_internal"), "A;B");
  EXPECT_FALSE(environment_.get("OMPI_MCA_mca_base_env_list"));
}

TEST_F(Launcher, OfOtherVersions_CarriesVariablesByTheirList) {
  std::vector<std::string> command = {"sh", "job.sh"};
  carry_to_other_nodes({"A", "B"}, command, environment_);
  EXPECT_EQ(environment_.get("OMPI_MCA_mca_base_env_list"), "A;B");
}

TEST_F(Launcher, OfOpenMpi4_IsToldValuesThatItWouldLose) {
  std::vector<std::string> command = {"mpiexec", "sim"};
  environment_.set("A", "shm://a;ofi://a?provider=tcp shm://b");
  carry_to_other_nodes({"A", "B"}, command, environment_);
  EXPECT_EQ(environment_.get("OMPI_MCA_mca_base_env_list"), "A=shm://a|ofi://a?provider=tcp shm://b;B");
}

TEST_F(Launcher, CarriesWhatTheUsersOwnListNames_AndHisValues) {
  make_launcher("mpiexec", "orterun");
  std::vector<std::string> command = {"mpiexec", "--mca", "mca_base_env_list", "FOO;B=1", "sim"};
  carry_to_other_nodes({"A", "B"}, command, environment_);
  EXPECT_EQ(command[3], "FOO;B=1;A");
  EXPECT_FALSE(environment_.get("OMPI_MCA_mca_base_env_list_internal"));
  environment_.set("OMPI_MCA_mca_base_env_list", "MINE");
  command = {"mpiexec", "sim"};
  carry_to_other_nodes({"A", "B"}, command, environment_);
  EXPECT_EQ(environment_.get("OMPI_MCA_mca_base_env_list"), "MINE;A;B");
}

TEST_F(Launcher, MayUseOtherNodesOfABatchJob) {
  const auto path = folder_->file("nodes");
  environment_.set("PBS_NODEFILE", path);
  std::ofstream(path) << "a\na\n";
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "sim"}, environment_));
  std::ofstream(path) << "a\nb\n";
  EXPECT_TRUE(may_use_other_nodes({"mpiexec", "sim"}, environment_));
}

TEST_F(Launcher, StandsBeforeTheProgram) {
  make_launcher("mpiexec", "orterun");
  make_program("sim", kOpenMpiProgram);
  EXPECT_EQ(find_program_behind({"mpiexec", "-x", "sim", "-n", "8", "sim", "sim"}, environment_), 5u);
  make_program("srun", "");
  EXPECT_EQ(find_program_behind({"srun", "-J", "sim", "-n8", "-H", "sim"}, environment_), 5u);
  EXPECT_EQ(find_program_behind({"mpiexec", "-H", "sim", "sim"}, environment_), 3u);
  EXPECT_EQ(find_program_behind({"sim", "-n", "8"}, environment_), 0u);
  EXPECT_EQ(find_program_behind({"mpiexec", "-n", "8"}, environment_), 0u);
}

TEST_F(Launcher, HostsThatAreThisOneAreNoOtherNodes) {
  for (const char *list : {"localhost:4", "localhost,127.0.0.1:2", "[::1]:4", "127.0.1.1"})
    EXPECT_FALSE(may_use_other_nodes({"mpiexec", "-host", list, "sim"}, environment_)) << list;
  EXPECT_FALSE(may_use_other_nodes({"mpiexec", "-H", nessie::host_name() + ":8", "sim"}, environment_));
}

}  // namespace
}  // namespace nessie::cli
