// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::Schema;
using testing::StagingTest;
using testing::Twins;

TEST_P(StagingTest, ShutdownDrainsFirst) {
  Twins file(*service_, *client_, "shutdown");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::scalar(), {});
  file.close(false);
  for (int s = 0; s < client_->servers(); ++s) {
    auto report = client_->shutdown(s, nessie::Deadline::in(std::chrono::seconds(30)));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->bytes_pending, 0u);
  }
  file.expect_same_files();
}

}  // namespace
}  // namespace staging
