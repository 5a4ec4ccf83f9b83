// SPDX-License-Identifier: BSD-3-Clause
// Changes of a staged file's mode that closing it also needs. All are collective.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// The arguments of ncmpi__enddef.
struct EndDefLayout {
  bool given = false;
  MPI_Offset h_minfree = 0, v_align = 0, v_minfree = 0, r_align = 0;
};

/// Makes every rank's writes done, and the number of records the same everywhere.
void agree(File &file);
/// What stands for a header that there is not.
staging::HeaderResult failure(int code);
/// Root's header, to all ranks.
void share(Communicator &ranks, staging::HeaderResult &header);
/// Carries the definitions out in the file, and takes its new header over. Native PnetCDF's code, the same on all
/// ranks.
int end_definitions(File &file, const EndDefLayout &layout);
void leave_independent_mode(File &file);

}  // namespace interpose
