// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::IoThread;
using testing::program_file;
using testing::StagingTest;

TEST_P(StagingTest, AFileThatIsNoneAnswersWithNativesCode) {
  const auto path = service_->file("text");
  std::ofstream(path) << "neither CDF nor HDF5";
  const auto native =
      IoThread::get().run([&] { return NativeFile::open(program_file(path, O_RDONLY), NC_NOWRITE, {}).nc_error; });
  EXPECT_NE(native, NC_NOERR);
  EXPECT_EQ(client_->open({2, path, NC_NOWRITE, {}}, program_file(path, O_RDONLY).get())->nc_error, native);
  EXPECT_EQ(*client_->close(3, -1, Closing::kDurable, Order(client_->servers())), NC_EBADID);
  EXPECT_EQ(*client_->sync(3, -1), NC_EBADID);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_P(StagingTest, AFileThatIsNotOpenedStaysWithNoServer) {
  const auto path = service_->file("text");
  std::ofstream(path) << "neither CDF nor HDF5";
  const auto before = open_descriptors();
  for (FileToken token = 20; token < 40; ++token)
    EXPECT_NE(client_->open({token, path, NC_NOWRITE, {}}, program_file(path, O_RDONLY).get())->nc_error, NC_NOERR);
  EXPECT_LE(open_descriptors(), before);
}

}  // namespace
}  // namespace staging
