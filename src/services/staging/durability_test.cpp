// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/durability.hpp>

#include <gtest/gtest.h>

namespace staging {
namespace {

TEST(DurabilityRules, WithoutAWordFilesAreInMemory) {
  const auto rules = DurabilityRules::parse("");
  ASSERT_TRUE(rules.ok());
  EXPECT_TRUE(rules->keeps_nothing());
  EXPECT_EQ(rules->of("/a/b.nc"), Durability::kMemory);
}

TEST(DurabilityRules, TheFirstPatternThatMatchesCounts) {
  const auto rules = DurabilityRules::parse("*.rst=replicated /scratch/*=durable, logged a*=memory");
  ASSERT_TRUE(rules.ok());
  EXPECT_FALSE(rules->keeps_nothing());
  EXPECT_EQ(rules->of("/scratch/x.rst"), Durability::kReplicated);
  EXPECT_EQ(rules->of("/scratch/run/x.nc"), Durability::kInFile);
  EXPECT_EQ(rules->of("/home/b.nc"), Durability::kLogged);
  EXPECT_EQ(rules->of("/home/a.nc"), Durability::kMemory);
  EXPECT_EQ(rules->of("/home/a/b.nc"), Durability::kLogged) << "a pattern without a slash is for the name";
}

TEST(DurabilityRules, AWordThatIsWrongIsNamed) {
  for (const char *wrong : {"lgged", "*.nc=often", "=logged", "logged=*.nc"}) {
    const auto rules = DurabilityRules::parse(wrong);
    ASSERT_FALSE(rules.ok()) << wrong;
    EXPECT_EQ(rules.error().code, nessie::Code::kInvalidArgument);
    EXPECT_NE(rules.error().message.find('\''), std::string::npos);
  }
}

TEST(DurabilityRules, NamesAreRead) {
  for (auto durability : {Durability::kMemory, Durability::kReplicated, Durability::kLogged, Durability::kInFile})
    EXPECT_EQ(*durability_named(name_of(durability)), durability);
}

}  // namespace
}  // namespace staging
