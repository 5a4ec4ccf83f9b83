// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::program_file;
using testing::StagingTest;

TEST_P(StagingTest, AbortOfANewFileLeavesItEmpty) {
  const auto path = service_->file("aborted.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  EXPECT_EQ(*client_->abort(5), NC_NOERR);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

}  // namespace
}  // namespace staging
