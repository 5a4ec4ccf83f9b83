// SPDX-License-Identifier: BSD-3-Clause
// When root says what is complete of a file: see marks.hpp.
#pragma once

#include <cstdint>

namespace interpose {

class File;

/// After a collective put to a variable: the file had so many records before it, as all ranks knew, and has more now.
/// On all ranks.
void mark_put(File &file, int varid, std::int64_t records_before, std::int64_t records);
/// Each of them may have been put, by ranks of which root has not heard.
void mark_fixed_variables(File &file);
/// All that was put is on its way: at sync, at close, and when data mode begins anew. On root.
void mark_all(File &file);

}  // namespace interpose
