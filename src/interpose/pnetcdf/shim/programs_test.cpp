// SPDX-License-Identifier: BSD-3-Clause
// Programs that the shim is in front of, and programs that it is not, as files show.
extern "C" {
#include "programs.h"
}

#include <gtest/gtest.h>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace {

class ProgramsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "programs." + std::to_string(::getpid());
    std::filesystem::create_directory(folder_);
    std::stringstream bytes;
    bytes << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
    dynamic_ = bytes.str();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string make(const std::string &name, const std::string &content, mode_t mode = 0755) const {
    const auto path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  /// Our own program without its dynamic linker.
  std::string as_static() const {
    auto bytes = dynamic_;
    Elf64_Ehdr head;
    bytes.copy(reinterpret_cast<char *>(&head), sizeof head);
    for (std::size_t i = 0; i < head.e_phnum; ++i) {
      auto *segment = reinterpret_cast<Elf64_Phdr *>(bytes.data() + head.e_phoff + i * sizeof(Elf64_Phdr));
      if (segment->p_type == PT_INTERP) segment->p_type = PT_NULL;
    }
    return bytes;
  }
  static bool without_us(const std::string &path) { return nessie_runs_without_us(AT_FDCWD, path.c_str()); }
  std::string folder_, dynamic_;
};

TEST_F(ProgramsTest, WhatTheDynamicLinkerLoads_RunsWithUs) {
  const auto path = make("dynamic", dynamic_);
  EXPECT_FALSE(without_us(path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(nessie_runs_without_us_open(fd));
  ::close(fd);
}

TEST_F(ProgramsTest, WhatIsStaticOrOfAnotherMachine_DoesNot) {
  EXPECT_TRUE(without_us(make("static", as_static())));
  auto other_class = dynamic_, other_machine = dynamic_;
  other_class[EI_CLASS] = ELFCLASS32;
  ++other_machine[offsetof(Elf64_Ehdr, e_machine)];
  EXPECT_TRUE(without_us(make("class", other_class)));
  EXPECT_TRUE(without_us(make("machine", other_machine)));
}

TEST_F(ProgramsTest, WhatAnotherDynamicLinkerLoads_DoesNot) {
  auto bytes = dynamic_;
  const auto name = bytes.find("ld-linux");
  ASSERT_NE(name, std::string::npos);
  bytes.replace(name, 8, "ld-other");
  EXPECT_TRUE(without_us(make("other", bytes)));
}

TEST_F(ProgramsTest, WhatGetsOtherRights_DoesNot) {
  EXPECT_TRUE(without_us(make("setuid", dynamic_, 04755)));
  EXPECT_TRUE(without_us(make("setgid", dynamic_, 02755)));
  const auto path = make("capable", dynamic_);
  const unsigned char capability[] = {1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // net_bind_service
  if (::setxattr(path.c_str(), "security.capability", capability, sizeof capability, 0) != 0)
    GTEST_SKIP() << "may not give capabilities here";
  EXPECT_TRUE(without_us(path));
}

TEST_F(ProgramsTest, AScriptIsAsItsInterpreter) {
  const auto fixed = make("static", as_static()), dynamic = make("dynamic", dynamic_);
  EXPECT_TRUE(without_us(make("one", "#! " + fixed + " -x\n")));
  EXPECT_FALSE(without_us(make("two", "#!" + dynamic + "\n")));
  EXPECT_TRUE(without_us(make("three", "#!" + folder_ + "/one\n")));
  const auto circle = folder_ + "/circle";
  EXPECT_TRUE(without_us(make("circle", "#!" + circle + "\n")));
}

TEST_F(ProgramsTest, WhatCannotBeTold_DoesNot_AndWhatCannotBeExecutedIsNotLookedAt) {
  EXPECT_TRUE(without_us(make("text", "echo a shell takes this\n")));
  EXPECT_TRUE(without_us(make("short", std::string(ELFMAG) + "\2")));
  EXPECT_TRUE(nessie_runs_without_us_open(-1));
  EXPECT_FALSE(without_us(folder_));
  EXPECT_FALSE(without_us(folder_ + "/absent"));
  const auto pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0755), 0);
  EXPECT_FALSE(without_us(pipe));
}

TEST_F(ProgramsTest, WhatCannotBeRead_DoesNot) {
  const auto path = make("unreadable", dynamic_, 0111);
  std::thread([&] {  // root reads everything; of this thread only
    ASSERT_TRUE(::geteuid() != 0 || ::syscall(SYS_setresuid, -1, 65534, -1) == 0);
    EXPECT_TRUE(without_us(path));
  })
      .join();
}

TEST_F(ProgramsTest, ByName_TheFirstOfPathThatMayBeExecutedCounts) {
  const std::string path = ::getenv("PATH");
  for (const char *folder : {"/a", "/b", "/c"}) std::filesystem::create_directory(folder_ + folder);
  make("a/program", as_static(), 0644);
  make("b/program", dynamic_);
  make("c/program", as_static());
  ::setenv("PATH", (folder_ + "/a:" + folder_ + "/b:" + folder_ + "/c").c_str(), 1);
  EXPECT_FALSE(nessie_runs_without_us_by_name("program"));
  EXPECT_FALSE(nessie_runs_without_us_by_name("absent"));
  EXPECT_TRUE(nessie_runs_without_us_by_name((folder_ + "/c/program").c_str()));
  ::setenv("PATH", (folder_ + "/none:" + folder_ + "/c").c_str(), 1);
  EXPECT_TRUE(nessie_runs_without_us_by_name("program"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_ + "/c");
  ::setenv("PATH", ":/usr/bin", 1);
  EXPECT_TRUE(nessie_runs_without_us_by_name("program"));
  std::filesystem::current_path(before);
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
