// SPDX-License-Identifier: BSD-3-Clause
#include "base/storage.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace nessie {
namespace {

class Storage : public testing::Test {
 protected:
  Storage() {
    if (const char *said = std::getenv("TMPDIR"); said != nullptr) before_ = said;
  }
  ~Storage() override {
    if (before_)
      ::setenv("TMPDIR", before_->c_str(), 1);
    else
      ::unsetenv("TMPDIR");
  }
  static std::string chosen_with(const char *temporary) {
    ::setenv("TMPDIR", temporary, 1);
    return folder_on_disk().value_or("");
  }
  std::optional<std::string> before_;
};

TEST_F(Storage, OfAFileThatIsNotThere_ItsFolderTells) {
  EXPECT_TRUE(is_in_memory("/dev/shm"));
  EXPECT_TRUE(is_in_memory("/dev/shm/not there"));
  EXPECT_FALSE(is_in_memory("/dev/shm/no folder/not there"));
  EXPECT_FALSE(is_in_memory("/proc"));
  EXPECT_EQ(is_in_memory("not there"), is_in_memory("."));
}

TEST_F(Storage, AFolderOnDisk_IsNoneInMemoryNorOneThatCannotBe) {
  for (const char *temporary : {"", ".", "/dev/shm", "/no such folder"})
    EXPECT_EQ(chosen_with(temporary), chosen_with("/dev/shm")) << temporary;
  std::string own = "/var/tmp/nessie-storage-XXXXXX";
  ASSERT_NE(::mkdtemp(own.data()), nullptr);
  const bool is_disk = !is_in_memory("/var/tmp");
  EXPECT_EQ(chosen_with("/dev/shm"), is_disk ? "/var/tmp" : "");
  EXPECT_EQ(chosen_with(own.c_str()), is_disk ? own : "");
  ::rmdir(own.c_str());
}

}  // namespace
}  // namespace nessie
