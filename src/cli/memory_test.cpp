// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include "testing/control_group_files.hpp"

#include <cstdint>
#include <limits>

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

TEST(DefaultMemory, IsSharedAmongTheServers) {
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_GE(std::stoull(default_memory_of_each(1)), std::stoull(default_memory_of_each(4)));
  EXPECT_GE(std::stoull(default_memory_of_each(1 << 20)), 64u);
}

}  // namespace
}  // namespace nessie::cli
