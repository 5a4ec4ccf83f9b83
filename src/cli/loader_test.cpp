// SPDX-License-Identifier: BSD-3-Clause
#include "loader.hpp"

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

TEST(LoaderList, HasThePathsInTheirOrder) {
  const auto list = parse_loader_list(
      "\tlinux-vdso.so.1 (0x00007ffc)\n\t/opt/tool.so (0x00007f01)\n\tlibm.so.6 => /lib/a b/libm.so.6 (0x00007f02)\n"
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n");
  EXPECT_EQ(list.paths,
            (std::vector<std::string>{"/opt/tool.so", "/lib/a b/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}));
  EXPECT_TRUE(list.missing.empty());
}

TEST(LoaderList, NamesWhatIsMissing) {
  const auto list = parse_loader_list("\tlibabsent.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n");
  EXPECT_EQ(list.missing, std::vector<std::string>{"libabsent.so.1"});
  EXPECT_EQ(list.paths, std::vector<std::string>{"/lib/libc.so.6"});
}

TEST(LoaderList, OfAnythingElse_IsEmpty) {
  for (const char *text : {"", "\n\n", "\tstatically linked\n", " => ", "\t => not found"}) {
    EXPECT_TRUE(parse_loader_list(text).paths.empty());
  }
}

constexpr const char *kStart =
    "     77:\tcalling init: /lib/libc.so.6\n     77:\t\n     77:\tinitialize program: ./a b\n";

TEST(LoaderLog, HasWhatWasOpenedAfterTheBeginning) {
  const auto log = parse_loader_log(std::string(kStart) + "     77:\tcalling init: /x/plugin.so\n");
  EXPECT_EQ(log.program, "./a b");
  ASSERT_EQ(log.at_start.size(), 1u);
  EXPECT_EQ(log.at_start[0].path, "/lib/libc.so.6");
  ASSERT_EQ(log.libraries.size(), 1u);
  EXPECT_EQ(log.libraries[0].path, "/x/plugin.so");
  EXPECT_FALSE(log.libraries[0].deep);
}

TEST(LoaderLog, KnowsWhatLooksIntoItselfFirst) {
  const auto log = parse_loader_log(std::string(kStart) +
                                    "     77:\tobject=/x/deep.so [0]\n     77:\t scope 0: /x/deep.so /lib/libc.so.6\n"
                                    "     77:\tobject=/x/plain.so [0]\n     77:\t scope 0: ./a b /lib/libc.so.6\n"
                                    "     77:\t scope 1: /x/plain.so\n"
                                    "     77:\tcalling init: /x/deep.so\n     77:\tcalling init: /x/plain.so\n");
  ASSERT_EQ(log.libraries.size(), 2u);
  EXPECT_TRUE(log.libraries[0].deep);
  EXPECT_FALSE(log.libraries[1].deep);
}

TEST(LoaderLog, OfAProgramThatBecameAnother_IsOfTheLast) {
  const auto log = parse_loader_log(std::string(kStart) + "     77:\tcalling init: /x/first.so\n" +
                                    "     77:\tcalling init: /lib/libc.so.6\n     77:\tinitialize program: python3\n" +
                                    "     77:\tcalling init: /x/second.so\n");
  EXPECT_EQ(log.program, "python3");
  ASSERT_EQ(log.libraries.size(), 1u);
  EXPECT_EQ(log.libraries[0].path, "/x/second.so");
}

TEST(LoaderLog, OfAProgramThatHasNotBegun_HasNothing) {
  EXPECT_TRUE(parse_loader_log("     77:\tcalling init: /lib/libc.so.6\n").libraries.empty());
  EXPECT_TRUE(parse_loader_log("").libraries.empty());
}

}  // namespace
}  // namespace nessie::cli
