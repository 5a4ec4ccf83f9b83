// SPDX-License-Identifier: BSD-3-Clause
// Close, by the program or because it is gone.
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::program_file;
using testing::Schema;
using testing::StagingTest;
using testing::Twins;

TEST_P(StagingTest, AFileWithoutItsProgramIsDrainedAndClosed) {
  Twins file(*service_, *client_, "orphan");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::scalar(), {});
  file.close_twin();
  client_.reset();
  auto other = service_->client();
  ASSERT_TRUE(other->settle({{}, file.path()}).ok());
  service_->stop();
  file.expect_same_files();
}

TEST_P(StagingTest, AFileThatWasNeverDefinedStaysEmptyWhenItsProgramDies) {
  const auto path = service_->file("undefined.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  client_.reset();
  service_->stop();
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

}  // namespace
}  // namespace staging
