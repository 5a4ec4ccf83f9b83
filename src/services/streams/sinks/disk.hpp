// SPDX-License-Identifier: BSD-3-Clause
// Files that are written so that what is on the disk is true.
#pragma once

#include <base/fd.hpp>
#include <nessie/result.hpp>
#include <services/staging/client/classic_header.hpp>

#include <string>

namespace nessie::streams::sinks {

/// The error that errno says.
Error cannot(const char *what, const std::string &path);
/// What netCDF-C takes for a path whatever is in it. kInvalidArgument: it is none.
Result<std::string> absolute(const std::string &path);
/// The file itself, which nobody else writes meanwhile. kBusy: another process does. kIo.
Result<Fd> open_locked(const std::string &path, int flags = 0);
/// kIo.
Status sync_file(const Fd &fd, const std::string &path);
/// Of a file of netCDF's classic formats. kBadMessage: it is none. kIo.
Result<staging::ClassicHeader> read_header(const Fd &fd, const std::string &path);
/// The folder that `path` is in has its entries on the disk. kIo.
Status sync_folder_of(const std::string &path);
/// `beside` takes the place of `path`; if that is not to be there, of nobody. kIo.
Status put_in_place(const std::string &beside, const std::string &path, bool is_there);

}  // namespace nessie::streams::sinks
