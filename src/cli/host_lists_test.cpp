// SPDX-License-Identifier: BSD-3-Clause
#include "host_lists.hpp"
#include "testing/printed_hosts.hpp"

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

using HostNames = std::vector<std::string>;

TEST(HostWords, HaveASlotWhereNoNumberIs) {
  EXPECT_EQ(read_host_words("a:4,b,user@c:2"), (HostList{{"a", 4}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(read_host_words("[fd00::1]:2,fd00::2,[fd00::3]"),
            (HostList{{"fd00::1", 2}, {"fd00::2", 1}, {"fd00::3", 1}}));
}

TEST(HostWords, OfOneHostAreAddedUp) { EXPECT_EQ(read_host_words("a,b,a,a:2"), (HostList{{"a", 4}, {"b", 1}})); }

TEST(HostWords, ThatAreNoNumbersTellNothing) {
  EXPECT_EQ(read_host_words("a:*,b:x,c:-1,d:99999999999,:4,,[e"),
            (HostList{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"e", 1}}));
}

TEST(HostFile, IsReadAsBothLaunchersWriteIt) {
  EXPECT_EQ(read_host_file("# all\na slots=4 max_slots=8\n\n b:2 # two\nc\n^d\n"),
            (HostList{{"a", 4}, {"b", 2}, {"c", 0}}));
}

TEST(HostFile, OfRepeatedHosts_HasASlotForEach) {
  EXPECT_EQ(read_host_file("a\na\nb\n"), (HostList{{"a", 2}, {"b", 0}}));
}

TEST(HostFile, MayBeARankfile) {
  EXPECT_EQ(read_host_file("rank 0=a slot=0:1\nrank 1=b slot=1\nrank 2=a slot=2\n"), (HostList{{"a", 2}, {"b", 1}}));
}

TEST(BatchLists, AreReadAsTheirSystemsWriteThem) {
  const HostList both{{"a", 2}, {"b", 1}};
  EXPECT_EQ(read_repeated_hosts("a\na\nb\n"), both);
  EXPECT_EQ(read_repeated_hosts("a b a"), both);
  EXPECT_EQ(read_host_pairs("a 2 b 1"), both);
  EXPECT_EQ(read_sge_file("a 1 all.q@a UNDEFINED\na 1 long.q@a UNDEFINED\nb 1 all.q@b UNDEFINED\n"), both);
}

TEST(SlurmHosts, HaveRangesWithTheirZeros) {
  EXPECT_EQ(*expand_slurm_hosts("n[001-003,7],m1"), (HostNames{"n001", "n002", "n003", "n7", "m1"}));
  EXPECT_EQ(*expand_slurm_hosts("n[8-11]-ib"), (HostNames{"n8-ib", "n9-ib", "n10-ib", "n11-ib"}));
  EXPECT_EQ(*expand_slurm_hosts("r[0-1]n[1-2],x"), (HostNames{"r0n1", "r0n2", "r1n1", "r1n2", "x"}));
  EXPECT_EQ(*expand_slurm_hosts(""), HostNames{});
}

TEST(SlurmHosts, ThatAreNoListAreRefused) {
  for (const char *list : {"n[1-2", "n1-2]", "n[]", "n[2-1]", "n[a-b]", "n[1-]", "n[-1]", "n[[1-2]]", "n[1-2]]"})
    EXPECT_EQ(expand_slurm_hosts(list).code(), Code::kInvalidArgument) << list;
}

TEST(SlurmHosts, AreNotMoreThanThereMayBe) {
  for (const char *list : {"n[0-999999999]", "n[0-999][0-999]", "n[0-65535],m"})
    EXPECT_EQ(expand_slurm_hosts(list).code(), Code::kInvalidArgument) << list;
  EXPECT_EQ(expand_slurm_hosts("n[0-65535]")->size(), 65536u);
}

TEST(SlurmHosts, HaveTheSlotsThatAreCountedBesides) {
  EXPECT_EQ(*read_slurm_hosts("n[1-4]", "16(x2),8"), (HostList{{"n1", 16}, {"n2", 16}, {"n3", 8}, {"n4", 0}}));
  EXPECT_EQ(*read_slurm_hosts("n[1-2]", "4(x999999999)"), (HostList{{"n1", 4}, {"n2", 0}}));
  EXPECT_EQ(*read_slurm_hosts("n[1-2]", ""), (HostList{{"n1", 0}, {"n2", 0}}));
}

TEST(HostWords, AreWrittenAsTheyAreRead) {
  const HostList hosts{{"a", 4}, {"fd00::1", 2}};
  EXPECT_EQ(to_host_words(hosts), "a:4,[fd00::1]:2");
  EXPECT_EQ(read_host_words(to_host_words(hosts)), hosts);
  EXPECT_EQ(to_host_words({{"a", 0}, {"b", 2}}), "a,b:2");
  EXPECT_EQ(to_host_words({{"a", 0}, {"b", 2}}, 8), "a:8,b:2");
}

}  // namespace
}  // namespace nessie::cli
