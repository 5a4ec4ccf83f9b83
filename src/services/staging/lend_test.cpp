// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::program_file;
using testing::Schema;
using testing::StagingTest;
using testing::Twins;

bool is_open_as(const nessie::Fd &file, const std::string &path, int access) {
  return identity_of(file.get()) == identity_of(path) && (::fcntl(file.get(), F_GETFL) & O_ACCMODE) == access;
}

TEST_P(StagingTest, AFileThatIsOpenIsLent_WithTheAccessOfItsHandle) {
  Twins file(*service_, *client_, "lent");
  file.create();
  file.enddef(Schema::definitions());
  const auto identity = identity_of(file.path());
  const auto other_rank = service_->client();
  for (auto *client : {client_.get(), other_rank.get()}) {
    auto lent = client->lend(file.token(), identity);
    ASSERT_TRUE(lent.ok()) << lent.error().message;
    EXPECT_TRUE(is_open_as(*lent, file.path(), O_RDWR));
  }
  file.close(true);
  EXPECT_EQ(client_->lend(file.token(), identity).code(), nessie::Code::kNotFound) << "it is closed";
  const OpenArgs to_read{5, file.path(), NC_NOWRITE, {}};
  ASSERT_EQ(client_->open(to_read, program_file(file.path(), O_RDONLY).get())->nc_error, NC_NOERR);
  auto lent = other_rank->lend(5, identity);
  ASSERT_TRUE(lent.ok()) << lent.error().message;
  EXPECT_TRUE(is_open_as(*lent, file.path(), O_RDONLY));
  ASSERT_TRUE(client_->close(5, 0, Closing::kEarly, Order(client_->servers())).ok());
}

TEST_P(StagingTest, WhoMayOnlyReadIsNotLentWhatCanBeWrittenTo) {
  Twins file(*service_, *client_, "read");
  file.create();
  file.enddef(Schema::definitions());
  file.close(true);
  const OpenArgs to_read{5, file.path(), NC_NOWRITE, {}};
  ASSERT_EQ(client_->open(to_read, program_file(file.path(), O_RDWR).get())->nc_error, NC_NOERR);
  EXPECT_EQ(client_->lend(5, identity_of(file.path())).code(), nessie::Code::kRefused);
  ASSERT_TRUE(client_->close(5, 0, Closing::kEarly, Order(client_->servers())).ok());
}

}  // namespace
}  // namespace staging
