// SPDX-License-Identifier: BSD-3-Clause
// From pages to native PnetCDF's calls. The I/O thread.
#pragma once

#include <services/staging/server/course.hpp>
#include <services/staging/server/native_file.hpp>
#include <services/staging/server/page_cache.hpp>

#include <memory>
#include <span>
#include <vector>

namespace staging {

/// Whether it may be written when it is tried again.
bool may_pass(const PageOutcome &outcome);

/// Writes what is dirty of pages of one file, but of none that is not sound. Of several each is one run: they go in one
/// call; if that fails, each goes alone, so that it is known which of them failed. `is_only_writer`: nobody else writes
/// to the file meanwhile, and what lies between the runs of a page may be written as it was read. `stops`: behind one
/// that failed, and may_pass(), none is tried.
std::vector<PageOutcome> write_pages(NativeFile &file, std::span<const std::unique_ptr<Page>> pages,
                                     bool is_only_writer, bool stops);

}  // namespace staging
