// SPDX-License-Identifier: BSD-3-Clause
// For tests: a folder of this process.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace streams::testing {

/// Empty at first; goes, with all that is in it, when the process ends.
inline const std::string &own_folder() {
  struct Folder {
    Folder() {
      if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path = (std::filesystem::temp_directory_path() / "streams-XXXXXX").string();
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace streams::testing
