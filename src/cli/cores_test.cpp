// SPDX-License-Identifier: BSD-3-Clause
#include "cores.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace nessie::cli {
namespace {

/// hwloc describes a machine that there is not.
class SyntheticNode : public testing::Test {
 protected:
  void SetUp() override {
    if (const char *components = std::getenv("HWLOC_COMPONENTS")) components_ = components;
    ::setenv("HWLOC_COMPONENTS", "synthetic", 1);
  }
  void TearDown() override {
    ::unsetenv("HWLOC_SYNTHETIC");
    components_ ? ::setenv("HWLOC_COMPONENTS", components_->c_str(), 1) : ::unsetenv("HWLOC_COMPONENTS");
  }
  static Result<NodeCores> read(const char *machine) {
    ::setenv("HWLOC_SYNTHETIC", machine, 1);
    return cores_of_this_node();
  }

 private:
  std::optional<std::string> components_;
};

TEST_F(SyntheticNode, HasTheCoresOfEachDomain) {
  const auto node = read("pack:2 [numa] core:2 pu:1");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->domains, (std::vector<Cores>{{{0}, {1}}, {{2}, {3}}}));
  EXPECT_EQ(node->count(), 4);
}

TEST_F(SyntheticNode, HasCoresOfSeveralHardwareThreads) {
  const auto node = read("numa:1 core:2 pu:2");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->domains, (std::vector<Cores>{{{0, 1}, {2, 3}}}));
}

TEST_F(SyntheticNode, WithTwoMemoriesOfTheSameCores_HasThemOnce) {
  const auto node = read("pack:2 [numa] [numa] core:2 pu:1");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->domains.size(), 2u);
}

TEST(ThisNode, HasCores) {
  const auto node = cores_of_this_node();
  ASSERT_TRUE(node);
  EXPECT_GE(node->count(), 1);
}

TEST(CoreLists, AreShort) {
  EXPECT_EQ(to_text({}), "");
  EXPECT_EQ(to_text({{3}}), "3");
  EXPECT_EQ(to_text({{0, 4}, {1, 5}, {7}}), "0-1,4-5,7");
}

}  // namespace
}  // namespace nessie::cli
