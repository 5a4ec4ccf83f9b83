// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::IoThread;
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

Definition renaming(DefinitionKind kind, int id, const std::string &name, const std::string &new_name) {
  Definition definition;
  definition.kind = kind, definition.varid = id, definition.name = name, definition.new_name = new_name;
  return definition;
}

TEST_P(StagingTest, WhatADeadServerMayHaveAmended_IsAmendedAgain) {
  auto renamed = many_attributes(1);
  renamed.push_back(renaming(DefinitionKind::kRenameDim, 0, "", "d"));
  renamed.push_back(renaming(DefinitionKind::kRenameVar, 0, "", "v"));
  renamed.push_back(renaming(DefinitionKind::kRenameAtt, NC_GLOBAL, "attribute_1", "renamed"));
  EndDefArgs args;
  args.definitions = Schema::definitions();
  std::ranges::copy(many_attributes(2), std::back_inserter(args.definitions));
  IoThread::get().run([&] {
    const auto file = NativeFile::create(program_file(service_->file("again.nc")), NC_CLOBBER, {}).file;
    ASSERT_EQ(file->end_define(args), NC_NOERR);
    EXPECT_EQ(file->amend_again(renamed), NC_NOERR) << "it had not been carried out";
    EXPECT_EQ(file->amend(renamed), NC_ENAMEINUSE);
    EXPECT_EQ(file->amend_again(renamed), NC_NOERR) << "it had been carried out";
    EXPECT_EQ(file->close(0), NC_NOERR);
  });
}

}  // namespace
}  // namespace staging
