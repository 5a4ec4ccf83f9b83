// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

#include <nssi/testing/testing.hpp>

namespace staging {
namespace {

using testing::Schema;
using testing::Service;
using testing::StagingTest;
using testing::Twins;

TEST_P(StagingTest, TheReportAccountsForEveryByte) {
  Twins file(*service_, *client_, "accounts");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.close(true);
  const std::uint64_t bytes = Schema::kZ * Schema::kY * Schema::kX * 4;
  std::uint64_t pulled = 0, drained = 0, acknowledged = 0, in_file = 0;
  for (int s = 0; s < client_->servers(); ++s) {
    const auto report = *client_->report(s);
    EXPECT_EQ(report.bytes_pending, 0u);
    EXPECT_TRUE(report.failures.empty());
    pulled += report.bytes_pulled, drained += report.bytes_drained;
    for (const auto &f : report.drained) acknowledged += f.bytes_acknowledged, in_file += f.bytes_in_file;
  }
  EXPECT_EQ(pulled, bytes);
  EXPECT_EQ(drained, bytes);
  EXPECT_EQ(acknowledged, bytes);
  EXPECT_EQ(in_file, bytes);
}

TEST(Staging, AReportOfAJob_TellsWhatItsOwnClientsDid) {
  Service service(1, Mode::kCaching, 64 << 20);
  auto one = service.client({{"staging.job", "one"}});
  const auto two = service.client({{"staging.job", "two"}}), nobodys = service.client();
  ASSERT_TRUE(one && two && nobodys);
  const auto write = [&](Client &client, const std::string &name) {
    Twins file(service, client, name);
    file.create();
    file.enddef(Schema::definitions());
    file.put(Schema::box(), Piece{0, {0, 0, 0}, Schema::box().shape, {}});
    file.close(true);
  };
  write(*one, "a");
  write(*two, "b");
  write(*two, "c");
  write(*nobodys, "d");
  const std::uint64_t bytes = Schema::kZ * Schema::kY * Schema::kX * 4;
  const auto of_one = *two->report_of(0, "one"), of_two = *two->report_of(0, "two");
  EXPECT_EQ(of_one.bytes_pulled, bytes);
  EXPECT_EQ(of_one.files, 1u);
  EXPECT_EQ(of_two.bytes_pulled, 2 * bytes);
  EXPECT_EQ(of_two.writes, 2 * of_one.writes);
  EXPECT_EQ(two->report(0)->bytes_pulled, 4 * bytes);
  EXPECT_EQ(two->report_of(0, "three")->files, 0u);
  one.reset();
  EXPECT_TRUE(nssi::testing::eventually([&] { return two->report_of(0, "one")->files == 0; }));  // it is forgotten
}

TEST(Staging, AReportNamesSoManyNativeFiles_AndCountsTheOthers) {
  Service service(1, Mode::kCaching, 1 << 20);
  const auto client = service.client();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 4096 + 3; ++i) ASSERT_TRUE(client->note_native("out.nc", "because").ok());
  const auto native = client->report(0)->native;
  ASSERT_EQ(native.size(), 4096u + 1);
  EXPECT_EQ(native.front(), "out.nc: because");
  EXPECT_EQ(native.back(), "3 more files, says server 0");
}

}  // namespace
}  // namespace staging
