// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::Schema;
using testing::StagingTest;
using testing::Twins;

TEST_P(StagingTest, DefinitionsCanBeAddedLater) {
  Twins file(*service_, *client_, "redef");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::history(), all(Schema::history(), 2));
  file.enddef({testing::var("late", NC_FLOAT, {1, 2, 3})}, false);
  const VariableLayout late{3, 4, false, {Schema::kZ, Schema::kY, Schema::kX}};
  file.put(late, all(late, 0));
  file.put(Schema::history(), any_piece(Schema::history(), 3));
  file.put(Schema::history(), all(Schema::history(), 3));
  file.close(true);
  file.expect_same_files();
}

}  // namespace
}  // namespace staging
