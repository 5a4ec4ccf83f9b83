// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include "testing/control_group_files.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace nessie::cli {
namespace {

constexpr auto kNoLimit = std::numeric_limits<std::uint64_t>::max();

class ControlGroups : public ControlGroupFiles {
 protected:
  std::uint64_t available(const std::string &membership) const {
    return control_group_available_bytes(membership, folder_->path());
  }
};

TEST_F(ControlGroups, OfVersion2_LeaveWhatTheNarrowestOnTheWayUpLeaves) {
  put("job_7/step_0/memory.max", "max");
  put("job_7/memory.max", "8000");
  put("job_7/memory.current", "3000");
  put("job_7/memory.stat", "anon 1000\ninactive_file 2000");
  EXPECT_EQ(available("0::/job_7/step_0\n"), 7000u);
  EXPECT_EQ(available("0::/another\n"), kNoLimit);
}

TEST_F(ControlGroups, OfVersion1_HaveFoldersOfTheirOwn) {
  put("memory/slurm/job_7/memory.limit_in_bytes", "8000");
  put("memory/slurm/job_7/memory.usage_in_bytes", "1000");
  put("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(available("5:cpu:/\n4:hugetlb,memory:/slurm/job_7\n0::/\n"), 7000u);
}

TEST_F(ControlGroups, OfAContainer_AreWhatIsMounted) {
  put("memory.max", "5000");
  put("memory.current", "6000");
  EXPECT_EQ(available("0::/system.slice/outside\n"), 0u);
  EXPECT_EQ(available(""), kNoLimit);
}

std::uint64_t allocated(const std::map<std::string, std::string> &variables) {
  Environment environment;
  for (const auto &[name, value] : variables) environment.set(name, value);
  return slurm_allocated_bytes(environment);
}

TEST(SlurmMemory, OfANode_IsWhatTheJobAskedForThere) {
  EXPECT_EQ(allocated({{"SLURM_MEM_PER_NODE", "2048"}, {"SLURM_CPUS_ON_NODE", "4"}}), std::uint64_t{2048} << 20);
}

TEST(SlurmMemory, OfAProcessor_IsTimesThoseOfTheNode) {
  EXPECT_EQ(allocated({{"SLURM_MEM_PER_CPU", "512"}, {"SLURM_CPUS_ON_NODE", "4"}}), std::uint64_t{2048} << 20);
  EXPECT_EQ(allocated({{"SLURM_MEM_PER_CPU", "512"}}), kNoLimit);
}

TEST(SlurmMemory, OfAWholeNodeOrOutsideOfAJob_HasNoLimit) {
  EXPECT_EQ(allocated({{"SLURM_MEM_PER_NODE", "0"}}), kNoLimit);
  EXPECT_EQ(allocated({{"SLURM_MEM_PER_NODE", "nonsense"}}), kNoLimit);
  EXPECT_EQ(allocated({{"SLURM_MEM_PER_NODE", "18446744073709551615"}}), kNoLimit);
  EXPECT_EQ(allocated({}), kNoLimit);
}

TEST(DefaultMemory, IsSharedAmongTheServers) {
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_GE(std::stoull(default_memory_of_each(1)), std::stoull(default_memory_of_each(4)));
  EXPECT_GE(std::stoull(default_memory_of_each(1 << 20)), 64u);
}

}  // namespace
}  // namespace nessie::cli
