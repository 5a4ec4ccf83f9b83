// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::program_file;
using testing::Schema;
using testing::StagingTest;
using testing::Twins;

std::vector<Definition> many_attributes(int count) {
  std::vector<Definition> definitions;
  for (int i = 0; i < count; ++i) {
    Definition attribute;
    attribute.kind = DefinitionKind::kPutAtt;
    attribute.varid = NC_GLOBAL;
    attribute.type = NC_CHAR;
    attribute.name = "attribute_" + std::to_string(i);
    attribute.length = 5;
    attribute.value = Bytes(5, std::byte{'x'});
    definitions.push_back(std::move(attribute));
  }
  return definitions;
}

TEST_P(StagingTest, DefinitionsThatAreSentAhead_AreCarriedOutInTheirOrder) {
  Twins file(*service_, *client_, "ahead");
  file.create();
  file.send_ahead(Schema::definitions());
  for (int batch = 0; batch < 3; ++batch) file.send_ahead(many_attributes(300 * (batch + 1)));
  file.enddef(many_attributes(2));
  file.put(Schema::box(), all(Schema::box(), 0));
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, ADefinitionThatWasSentAhead_AndIsRefused_IsToldByEnddef) {
  const auto path = service_->file("refused.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  auto definitions = many_attributes(1);
  definitions[0].name = "";
  ASSERT_TRUE(client_->define({5, definitions}));
  EndDefArgs args;
  args.file = 5;
  EXPECT_EQ(client_->enddef(args, true)->nc_error, NC_EBADNAME);
  EXPECT_EQ(*client_->abort(5), NC_NOERR);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST_P(StagingTest, AFileThatIsAborted_ForgetsWhatWasSentAhead) {
  const auto path = service_->file("forgotten.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  ASSERT_TRUE(client_->define({5, many_attributes(1000)}));
  EXPECT_EQ(*client_->abort(5), NC_NOERR);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

}  // namespace
}  // namespace staging
