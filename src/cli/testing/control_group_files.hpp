// SPDX-License-Identifier: BSD-3-Clause
// A folder with files like those of the kernel's control groups.
#pragma once

#include <cli/run_directory.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace nessie::cli {

class ControlGroupFiles : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = RunDirectory::make();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
  }
  void put(const std::string &name, const std::string &text) {
    const std::filesystem::path path = folder_->file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  std::optional<RunDirectory> folder_;
};

}  // namespace nessie::cli
