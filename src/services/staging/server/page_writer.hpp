// SPDX-License-Identifier: BSD-3-Clause
// From pages to native PnetCDF's calls. The I/O thread.
#pragma once

#include <services/staging/server/native_file.hpp>
#include <services/staging/server/page_cache.hpp>

#include <memory>
#include <span>
#include <vector>

namespace staging {

/// What came of a page: native PnetCDF's code, and the system's reason, if it can be known.
struct PageOutcome {
  int nc_error = 0, system_error = 0;
};

/// Writes what is dirty of pages of one file. Of several each is one run: they go in one call; if that fails, each goes
/// alone, so that it is known which of them failed. `is_only_writer`: nobody else writes to the file meanwhile, and
/// what lies between the runs of a page may be written as it was read.
std::vector<PageOutcome> write_pages(NativeFile &file, std::span<const std::unique_ptr<Page>> pages,
                                     bool is_only_writer);

}  // namespace staging
