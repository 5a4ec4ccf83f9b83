// SPDX-License-Identifier: BSD-3-Clause
// Files of which nothing is lost when all servers have died: native PnetCDF gets them, at the next point at which all
// ranks come to the same decision. A file of which something that was put may have been in the servers' memory only
// stays theirs, and each call on it fails.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// Whether the servers, which have died, may have had something of the file that the program opens now. Root.
bool may_have_lost(const OpenedAs &as);

/// At the first collective read or write of a file since all of it was in the file: has native PnetCDF open it, if all
/// servers have died. kLeftNative; or NC_NOERR: it stays staged; or the error with which it could not be opened.
int look_for_servers(File &file);

/// Whether a new file whose servers did not answer when it was to leave define mode may be made natively. Root.
bool may_be_made_natively(File &file, const nessie::Error &error);

/// Makes and defines it so, on all ranks, and ends define mode.
int make_natively(File &file, const EndDefLayout &layout);

}  // namespace interpose
