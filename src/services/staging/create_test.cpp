// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::contents;
using testing::program_file;
using testing::StagingTest;

TEST_P(StagingTest, WhatTheProgramCannotWriteIsNotWrittenForIt) {
  const auto path = service_->file("read-only.nc");
  std::ofstream(path) << "precious";
  EXPECT_EQ(client_->create({4, path, NC_CLOBBER, {}}, program_file(path, O_RDONLY).get()).code(),
            nessie::Code::kInvalidArgument);
  EXPECT_EQ(client_->create({4, path, NC_CLOBBER, {}}, program_file("/dev/null", O_RDWR).get()).code(),
            nessie::Code::kInvalidArgument);
  EXPECT_EQ(contents(path), "precious");
}

TEST_P(StagingTest, ANameThatLeadsElsewhere_DoesNotMatter) {
  const auto staged = service_->file("staged.nc"), other = service_->file("other.nc");
  std::ofstream(other) << "precious";
  ASSERT_EQ(*client_->create({5, other, NC_CLOBBER, {}}, program_file(staged).get()), NC_NOERR);
  EXPECT_EQ(*client_->close(5, -1, Closing::kDurable, Order(client_->servers())), NC_NOERR);
  EXPECT_EQ(contents(other), "precious");
}

}  // namespace
}  // namespace staging
