// SPDX-License-Identifier: BSD-3-Clause
// What the drainer hands to the I/O thread at a time.
#pragma once

#include <services/staging/server/open_file.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace staging {

inline std::uint64_t dirty_bytes(const Page &page) {
  return static_cast<std::uint64_t>(page.dirty_elements() * page.owner().variable.element_bytes);
}

/// Pages of one file.
struct DrainTask {
  void add(std::unique_ptr<Page> page) {
    bytes += dirty_bytes(*page);
    pages.push_back(std::move(page));
  }
  /// The I/O thread.
  void write(NativeFile &native, bool is_only_writer);
  void write_now(NativeFile &native, bool is_only_writer);

  std::vector<std::unique_ptr<Page>> pages;
  std::vector<PageOutcome> outcomes;
  std::shared_ptr<OpenFile> file;
  std::optional<nessie::service::LogRange> spilled;  ///< its only page was, and is there until it is in the file
  bool is_patient = false;                           ///< what fails may be tried again
  std::uint64_t bytes = 0;
  double started_s = 0, ended_s = 0;
};

}  // namespace staging
