// SPDX-License-Identifier: BSD-3-Clause
// A folder of the test's own, with files, and with launchers that are found there.
#pragma once

#include <cli/environment.hpp>
#include <cli/run_directory.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace nessie::cli {

class FolderCase : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = RunDirectory::make();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    environment_.set("PATH", folder_->path());
  }
  /// Its path. Folders on the way are made.
  std::string make_file(const std::string &name, const std::string &content) {
    const std::filesystem::path path = folder_->file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path.string();
  }
  std::string make_program(const std::string &name, const std::string &content = "#!/bin/sh\n") {
    auto path = make_file(name, content);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  /// A program that is called `name`, and is a link to one with the name that tells whose it is.
  void make_launcher(const std::string &name, const std::string &real_name) {
    std::filesystem::create_symlink(make_program(real_name), folder_->file(name));
  }
  /// mpiexec is Open MPI's, mpirun is Hydra; srun, and a program to be launched.
  void make_launchers() {
    make_launcher("mpiexec", "orterun");
    make_launcher("mpirun", "mpiexec.hydra");
    make_program("srun");
    make_program("sim");
  }

  std::optional<RunDirectory> folder_;
  Environment environment_;  ///< with nothing but PATH, the folder
};

}  // namespace nessie::cli
