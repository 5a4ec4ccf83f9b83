// SPDX-License-Identifier: BSD-3-Clause
// The number of records in the header of a file that others may have open, too.
#pragma once

#include <cstdint>

namespace staging {

/// False: it cannot be read, or this is no netCDF file.
bool read_num_records(int fd, std::uint64_t &value);
bool write_num_records(int fd, std::uint64_t value);
/// Whether a program has emptied the file, or written over its beginning.
bool lost_header(int fd);

}  // namespace staging
