// SPDX-License-Identifier: BSD-3-Clause
#include "control_groups.hpp"

#include "testing/control_group_files.hpp"

namespace nessie::cli {
namespace {

class Processors : public ControlGroupFiles {
 protected:
  std::optional<double> of(const std::string &membership) const {
    return control_group_processors(membership, folder_->path());
  }
};

TEST_F(Processors, OfVersion2_AreThoseOfTheNarrowestGroupOnTheWayUp) {
  put("job_7/cpu.max", "150000 100000");
  put("job_7/step_0/cpu.max", "max 100000");
  EXPECT_EQ(of("0::/job_7/step_0\n"), 1.5);
  EXPECT_EQ(of("0::/another\n"), std::nullopt);
}

TEST_F(Processors, OfVersion1_HaveFoldersOfTheirOwn) {
  put("cpu/job_7/cpu.cfs_quota_us", "50000");
  put("cpu/job_7/cpu.cfs_period_us", "100000");
  put("cpu/cpu.cfs_quota_us", "-1");
  put("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(of("4:cpu,cpuacct:/job_7\n"), 0.5);
  EXPECT_EQ(of("4:cpu,cpuacct:/\n"), std::nullopt);
}

TEST_F(Processors, OfAGroupThatAContainerHides_AreThoseAtTheTop) {
  put("cpu.max", "200000 100000");
  EXPECT_EQ(of("0::/docker/1234\n"), 2.0);
}

TEST_F(Processors, ThatNobodyTellsOf_HaveNoLimit) {
  EXPECT_EQ(of(""), std::nullopt);
  EXPECT_EQ(of("nonsense\n0::\n"), std::nullopt);
}

}  // namespace
}  // namespace nessie::cli
