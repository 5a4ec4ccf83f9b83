// SPDX-License-Identifier: BSD-3-Clause
// Clean pages of files that are closed, for whoever opens them again and finds them as they were. Progress thread.
#pragma once

#include <services/staging/server/open_file.hpp>

#include <list>
#include <memory>
#include <vector>

namespace staging {

class Shelf {
 public:
  /// Takes the clean pages of a file that has just been closed natively, and of which there is no other handle.
  void put(OpenFile &file);
  /// Gives them to a new handle, if the file is as it was, and has the same variables. What is known of the file by an
  /// older handle is over in any case.
  void take(OpenFile &file);
  void drop(const FileIdentity &identity);

 private:
  struct Entry {
    FileIdentity identity;
    FileStamp stamp;
    std::vector<std::unique_ptr<CachedVariable>> variables;
  };
  std::list<Entry> entries_;  ///< oldest first
};

}  // namespace staging
