// SPDX-License-Identifier: BSD-3-Clause
#include "subject.hpp"

#include "testing/elf_sample.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace nessie::cli {
namespace {

class Subjects : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "subject." + std::to_string(::getpid());
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string make(const std::string &name, const std::string &content, mode_t mode = 0755) const {
    const auto path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  Result<Subject> examine_one(const std::string &word) const {
    auto environment = Environment::current();
    environment.set("PATH", folder_);
    return examine({word}, environment);
  }
  std::string folder_;
};

TEST_F(Subjects, AProgramIsFoundByItsPathAndInPath) {
  const auto path = make("sim", ElfSample().bytes());
  for (const auto &word : {path, std::string("sim")}) {
    const auto subject = examine_one(word);
    ASSERT_TRUE(subject.ok()) << subject.error().message;
    EXPECT_EQ(subject->path, path);
    EXPECT_TRUE(subject->program().elf.wants("ncmpi_create"));
  }
}

TEST_F(Subjects, AScriptIsItsInterpreter) {
  const auto python = make("python3", ElfSample().bytes());
  const auto direct = make("direct.py", "#!" + python + " -B\n"),
             env = make("env.py", "#!/usr/bin/env -S A=b python3\n"), twice = make("twice", "#! " + direct + "\n");
  for (const auto &script : {direct, env}) {
    const auto subject = examine_one(script);
    ASSERT_TRUE(subject.ok()) << subject.error().message;
    EXPECT_EQ(subject->path, python);
    EXPECT_EQ(subject->scripts, std::vector<std::string>{script});
  }
  const auto subject = examine_one(twice);
  ASSERT_TRUE(subject.ok());
  EXPECT_EQ(subject->scripts, (std::vector<std::string>{twice, direct}));
  EXPECT_EQ(examine_one(make("text", "echo a shell takes this\n"))->path, "/bin/sh");
}

TEST_F(Subjects, WhatIsNoProgram_IsSaidByName) {
  EXPECT_EQ(examine_one(folder_ + "/absent").code(), Code::kNotFound);
  EXPECT_EQ(examine_one("absent").code(), Code::kNotFound);
  EXPECT_EQ(examine_one(folder_).code(), Code::kRefused);
  EXPECT_EQ(examine_one(make("plain", ElfSample().bytes(), 0644)).code(), Code::kRefused);
  EXPECT_EQ(examine_one(make("empty", "")).code(), Code::kBadMessage);
  EXPECT_EQ(examine_one(make("zeros", std::string(100, '\0'))).code(), Code::kBadMessage);
  EXPECT_EQ(examine_one(make("short", ElfSample().bytes().substr(0, 300))).code(), Code::kBadMessage);
  EXPECT_EQ(examine_one(make("lost", "#!/absent/python\n")).code(), Code::kBadMessage);
  EXPECT_EQ(examine_one(make("circle", "#!" + folder_ + "/circle\n")).code(), Code::kBadMessage);
}

TEST_F(Subjects, RightsOfTheOwnersOwnProgram_DoNotCount) {
  const auto subject = examine_one(make("setuid", ElfSample().bytes(), 04755));
  ASSERT_TRUE(subject.ok());
  EXPECT_EQ(subject->rights, "the setuid bit");
  EXPECT_FALSE(subject->rights_count);
}

TEST_F(Subjects, RightsOfAnotherUsersProgram_Count) {
  const auto path = make("setuid", ElfSample().bytes());
  if (::geteuid() != 0 || ::chown(path.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root gives files away";
  for (const auto &[mode, name] : {std::pair{04755u, "the setuid bit"}, {02755u, "the setgid bit"}}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto subject = examine_one(path);
    ASSERT_TRUE(subject.ok());
    EXPECT_EQ(subject->rights, name);
    EXPECT_TRUE(subject->rights_count);
  }
}

TEST_F(Subjects, APnetcdfShowsItsVersion) {
  ElfSample sample;
  sample.interpreter.clear();
  sample.defined = {"ncmpi_create", "ncmpi_inq_libvers"};
  const auto bytes = sample.bytes();
  const std::string zero(1, '\0');
  const auto identified = make("a", bytes + "one of 2.5 of " + "library version 1.14.1 of 31 Jul 2025 $ ");
  const auto alone = make("b", bytes + zero + "1.99.0 of 1 Jan 2030" + zero + "more");
  EXPECT_EQ(read_library(identified)->pnetcdf_version, "1.14.1 of 31 Jul 2025");
  EXPECT_EQ(read_library(alone)->pnetcdf_version, "1.99.0 of 1 Jan 2030");
  EXPECT_EQ(read_library(make("c", bytes))->pnetcdf_version, "");
  EXPECT_FALSE(read_library(make("d", "no library")).has_value());
}

}  // namespace
}  // namespace nessie::cli
