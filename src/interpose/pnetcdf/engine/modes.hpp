// SPDX-License-Identifier: BSD-3-Clause
// Changes of a staged file's mode that closing it also needs. All are collective.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// Makes every rank's writes done, and the number of records the same everywhere.
void agree(File &file);
/// What stands for a header that there is not.
staging::HeaderResult failure(int code);
/// Root's header, to all ranks.
void share(Communicator &ranks, staging::HeaderResult &header);
void leave_independent_mode(File &file);

}  // namespace interpose
