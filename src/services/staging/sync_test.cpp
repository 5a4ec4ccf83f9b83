// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::Schema;
using testing::StagingTest;
using testing::Twins;

TEST_P(StagingTest, SyncPutsEverythingIntoTheFile) {
  Twins file(*service_, *client_, "sync");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::scalar(), {});
  file.put(Schema::history(), all(Schema::history(), 2));
  auto synced = client_->sync(file.token(), file.num_records);
  ASSERT_TRUE(synced.ok() && *synced == NC_NOERR);
  file.close_twin();
  file.expect_same_files();
  auto closed = client_->close(file.token(), file.num_records, Closing::kDurable, Order(client_->servers()));
  ASSERT_TRUE(closed.ok() && *closed == NC_NOERR);
}

TEST_P(StagingTest, AFileThatIsEmptiedWhileItIsOpenIsNoError) {
  Twins file(*service_, *client_, "emptied");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::history(), all(Schema::history(), 2));
  for (int i = 0; i < 2; ++i) {
    auto synced = client_->sync(file.token(), file.num_records);
    ASSERT_TRUE(synced.ok() && *synced == NC_NOERR);
    std::filesystem::resize_file(file.path(), 0);
  }
  file.close(true);
}

/// The server lives, though its I/O thread moves no further.
TEST(Staging, ASyncWaitsForAFileSystemThatHangsForLongerThanTheTimeout) {
  constexpr std::chrono::milliseconds kTimeout{200};
  testing::Service service(1, Mode::kCaching, 64 << 20);
  const auto client = service.client({{"staging.timeout", std::to_string(kTimeout.count()) + "ms"}});
  Twins file(service, *client, "hangs");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), Piece{0, {0, 0, 0}, Schema::box().shape, {}});
  std::promise<void> goes_on;
  testing::IoThread::get().queue().submit(Worker::Lane::kRequest, [&] { goes_on.get_future().wait(); });
  auto synced = std::async([&] { return client->sync(file.token(), 0); });
  EXPECT_EQ(synced.wait_for(5 * kTimeout), std::future_status::timeout);
  goes_on.set_value();
  const auto answer = synced.get();
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer, NC_NOERR);
  file.close(true);
  file.expect_same_files();
}

}  // namespace
}  // namespace staging
