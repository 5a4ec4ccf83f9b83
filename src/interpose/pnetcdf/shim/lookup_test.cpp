// SPDX-License-Identifier: BSD-3-Clause
// dlsym as this library has it, in front of this program's own.
extern "C" {
#include "library.h"
#include "shim.h"
}

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <string>

namespace {

int entry, seen_frames;
bool was_called, has_native;

int count_frames() {
  int count = 0;
  const auto count_one = [](_Unwind_Context *, void *frames) {
    ++*static_cast<int *>(frames);
    return _URC_NO_REASON;
  };
  _Unwind_Backtrace(count_one, &count);
  return count;
}

}  // namespace

// What lookup.c asks the rest of the library.
int nessie_shim_index(const char *) {
  was_called = true;
  seen_frames = count_frames();
  return has_native ? 1 : -1;
}
bool nessie_has_native(void) { return has_native; }
bool nessie_is_native(const void *) { return true; }
const void *nessie_next_function(const void *, const char *) { return nullptr; }
bool nessie_is_of_other(const void *) { return false; }
void nessie_part_other(const void *) {}
void *nessie_shim_entry(int) { return &entry; }
const char *nessie_shim_marked_name(int) { return NESSIE_MARK "ncmpi_create"; }
void nessie_shim_note_other(void) {}

namespace {

class LookupTest : public ::testing::Test {
 protected:
  void SetUp() override { was_called = has_native = false; }
  void *library_ = ::dlopen("libm.so.6", RTLD_LAZY);
};

TEST_F(LookupTest, OtherNames_GoToTheCLibrary) {
  EXPECT_NE(::dlsym(library_, "cos"), nullptr);
  EXPECT_FALSE(was_called);
  EXPECT_EQ(::dlsym(library_, "ncmpi_absent"), nullptr);
  EXPECT_TRUE(was_called);
  EXPECT_NE(std::string(::dlerror()).find("ncmpi_absent"), std::string::npos);
}

TEST_F(LookupTest, NativeFunctions_AreOurs) {
  has_native = true;
  EXPECT_EQ(::dlsym(library_, "ncmpi_create"), &entry);
}

TEST_F(LookupTest, WhoLooksAtTheStackMeanwhile_SeesAllOfIt) {
  (void)::dlsym(library_, "ncmpi_create");
  EXPECT_GT(seen_frames, count_frames());
}

}  // namespace
