// SPDX-License-Identifier: BSD-3-Clause
#include "allocation.hpp"

#include "testing/folder_case.hpp"
#include "testing/printed_hosts.hpp"

#include <base/host.hpp>

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

using Command = std::vector<std::string>;

class Allocations : public FolderCase {
 protected:
  HostList hosts(const Command &command) {
    const auto found = find_allocation(command, environment_);
    return found ? found->hosts : HostList{};
  }
};

TEST_F(Allocations, OfWhichNobodyTells_AreThisHost) {
  EXPECT_EQ(hosts({"mpiexec", "-n", "4", "sim"}), (HostList{{host_name(), 0, true}}));
  EXPECT_EQ(find_allocation({"sim"}, environment_)->source, "");
}

TEST_F(Allocations, AreWhatTheLauncherIsTold) {
  EXPECT_EQ(hosts({"mpiexec", "--host", "localhost:4,b:2", "sim"}), (HostList{{"localhost", 4, true}, {"b", 2}}));
  EXPECT_EQ(hosts({"mpiexec", "--hostfile", make_file("h", "b slots=2\nc slots=4\n"), "sim"}),
            (HostList{{"b", 2}, {"c", 4}}));
  EXPECT_EQ(hosts({"srun", "-w", "n[1-2]", "sim"}), (HostList{{"n1", 0}, {"n2", 0}}));
  EXPECT_EQ(hosts({"srun", "--nodelist=n[1-2]", "sim"}), (HostList{{"n1", 0}, {"n2", 0}}));
  EXPECT_EQ(find_allocation({"mpiexec", "--host", "b", "sim"}, environment_)->source, "--host");
}

TEST_F(Allocations, OfSeveralProgramsAreJoined) {
  EXPECT_EQ(hosts({"mpiexec", "--host", "b:2", "sim", ":", "--host", "b:4,c:2", "analysis"}),
            (HostList{{"b", 4}, {"c", 2}}));
}

TEST_F(Allocations, OfAListChooseAmongThoseOfAFile) {
  EXPECT_EQ(hosts({"mpiexec", "--hostfile", make_file("h", "b\nc\n"), "--host", "c:3", "sim"}), (HostList{{"c", 3}}));
}

TEST_F(Allocations, OfTheLauncherComeBeforeThoseOfTheBatchSystem) {
  environment_.set("PBS_NODEFILE", make_file("nodes", "b\nb\nc\n"));
  EXPECT_EQ(hosts({"mpiexec", "--host", "c", "sim"}), (HostList{{"c", 1}}));
  EXPECT_EQ(told_allocations({"mpiexec", "--host", "c", "sim"}, environment_).size(), 2u);
}

TEST_F(Allocations, OfSlurmHaveTheTasksOfEachNode) {
  environment_.set("SLURM_JOB_NODELIST", "n[1-3]");
  environment_.set("SLURM_JOB_CPUS_PER_NODE", "16(x3)");
  environment_.set("SLURMD_NODENAME", "n2");
  EXPECT_EQ(hosts({"srun", "sim"}), (HostList{{"n1", 16}, {"n2", 16, true}, {"n3", 16}}));
  environment_.set("SLURM_TASKS_PER_NODE", "4(x2),2");
  EXPECT_EQ(hosts({"srun", "sim"}), (HostList{{"n1", 4}, {"n2", 4, true}, {"n3", 2}}));
}

TEST_F(Allocations, OfOtherBatchSystemsBeginOnThisHost) {
  const HostList both{{"b", 2, true}, {"c", 1}};
  const std::vector<std::pair<std::string, std::string>> variables = {
      {"PBS_NODEFILE", make_file("pbs", "b\nb\nc\n")},
      {"LSB_MCPU_HOSTS", "b 2 c 1"},
      {"LSB_DJOB_HOSTFILE", make_file("lsf", "b\nb\nc\n")},
      {"LSB_HOSTS", "b b c"},
      {"PE_HOSTFILE", make_file("sge", "b 2 all.q@b UNDEFINED\nc 1 all.q@c UNDEFINED\n")}};
  for (const auto &[name, value] : variables) {
    Environment environment;
    environment.set(name, value);
    const auto found = find_allocation({"sh", "job.sh"}, environment);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->hosts, both) << name;
    EXPECT_EQ(found->source, name);
  }
}

TEST_F(Allocations, ThatCannotBeReadAreErrors) {
  EXPECT_EQ(find_allocation({"mpiexec", "--hostfile", "/absent", "sim"}, environment_).code(), Code::kNotFound);
  EXPECT_EQ(find_allocation({"mpiexec", "--hostfile", make_file("h", "# none\n"), "sim"}, environment_).code(),
            Code::kInvalidArgument);
  environment_.set("SLURM_JOB_NODELIST", "n[1-");
  EXPECT_EQ(find_allocation({"srun", "sim"}, environment_).code(), Code::kInvalidArgument);
}

TEST_F(Allocations, HaveTheRanksThatTheCommandAsksFor) {
  const auto count = [&](const Command &command) { return find_ranks(command, environment_).count; };
  const auto per_host = [&](const Command &command) { return find_ranks(command, environment_).per_host; };
  EXPECT_EQ(count({"mpiexec", "-n", "8", "/bin/true", "-n", "3"}), 8);
  EXPECT_EQ(count({"mpiexec", "-np", "4", "sim", ":", "-n", "2", "analysis"}), 6);
  EXPECT_EQ(count({"mpiexec", "-n", "4", "/bin/true", ":", "/bin/true"}), 0);
  EXPECT_EQ(count({"sim", "-n", "8"}), 0);
  EXPECT_EQ(count({"mpiexec", "-n", "-5", "sim"}), 0);
  EXPECT_EQ(count({"srun", "-n8", "sim"}), 8);
  EXPECT_EQ(count({"srun", "--ntasks=8", "-c", "2", "sim"}), 8);
  EXPECT_EQ(per_host({"mpiexec", "-ppn", "2", "sim"}), 2);
  EXPECT_EQ(per_host({"mpiexec", "--map-by", "ppr:4:node", "sim"}), 4);
  EXPECT_EQ(per_host({"srun", "-N", "2", "--ntasks-per-node=4", "sim"}), 4);
  environment_.set("SLURM_NTASKS", "12");
  EXPECT_EQ(count({"srun", "sim"}), 12);
}

TEST_F(Allocations, AFileWithoutAnEndIsNoListOfHosts) {
  EXPECT_EQ(find_allocation({"mpiexec", "--hostfile", "/dev/zero", "sim"}, environment_).code(), Code::kNotFound);
}

}  // namespace
}  // namespace nessie::cli
