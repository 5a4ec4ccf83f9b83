// SPDX-License-Identifier: BSD-3-Clause
// A disk by itself, past the kernel's cache: what a log, or a spill, cannot be faster than.
#pragma once

#include <nessie/result.hpp>

#include <cstdint>
#include <string>

namespace bench {

/// Seconds that it takes to write so much to a new file in `folder`, in blocks of 2 MiB, and to have it on the disk.
nessie::Result<double> write_to_disk(const std::string &folder, std::uint64_t size_bytes);
/// The same to read as much, which was written before.
nessie::Result<double> read_from_disk(const std::string &folder, std::uint64_t size_bytes);

}  // namespace bench
