// SPDX-License-Identifier: BSD-3-Clause
#include "base/host.hpp"

#include <gtest/gtest.h>

namespace {

using namespace nessie;

TEST(Host, HasANameAndOneStart) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(host_name().find('\n'), std::string::npos);
  EXPECT_EQ(boot_id().size(), 36u);
  EXPECT_EQ(boot_id(), boot_id());
  EXPECT_FALSE(memory_domain().empty());
  EXPECT_EQ(memory_domain().find('/'), std::string::npos);
}

}  // namespace
