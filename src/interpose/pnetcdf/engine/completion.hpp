// SPDX-License-Identifier: BSD-3-Clause
// Carries out, or forgets, what was posted.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

#include <vector>

namespace interpose {

/// ncmpi_wait; ncmpi_wait_all, which is collective and carries nothing out, on any rank, if one of them names a request
/// that does not exist: that rank gets NC_EINVAL_REQUEST, the others NC_NOERR. Otherwise each rank gets native
/// PnetCDF's code of its own requests, which are over then: what is read is in the program's memory, what is written
/// need not be in the file.
int complete(File &file, int count, int *ids, int *statuses, bool collective);
/// Completes requests that the program never saw (varn, mput and mget), as complete() does.
int complete_own(File &file, std::vector<int> ids, bool collective);
/// ncmpi_cancel: forgets requests, of which nothing has been moved.
int cancel(File &file, int count, int *ids, int *statuses);

}  // namespace interpose
