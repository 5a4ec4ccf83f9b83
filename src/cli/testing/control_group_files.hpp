// SPDX-License-Identifier: BSD-3-Clause
// A folder with files like those of the kernel's control groups.
#pragma once

#include <cli/testing/folder_case.hpp>

#include <string>

namespace nessie::cli {

class ControlGroupFiles : public FolderCase {
 protected:
  void put(const std::string &name, const std::string &text) { make_file(name, text + "\n"); }
};

}  // namespace nessie::cli
