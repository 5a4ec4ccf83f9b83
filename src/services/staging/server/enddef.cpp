// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

Result<HeaderResult> Server::enddef(Request &, const EndDefArgs &args) {
  HeaderResult result;
  const auto file = find(args.file);
  if (!file) return HeaderResult{NC_EBADID, {}, 0, 0, {}};
  const FileGate::Alone alone(file->gate);
  file->writes = {};  // all are done; clients count anew
  file->arrived_in.clear();
  drainer_.flush(*file, PageState::kUrgent);  // an error is told by what comes next: definitions stay
  file->forget_clean();
  file->raise_num_records(args.num_records);
  result.nc_error = read_header(*file, result, [&] { return file->native->end_define(args); });
  note_write(*file);
  file->in_define_mode = result.nc_error != NC_NOERR;
  file->defined = file->defined || !file->in_define_mode;
  return result;
}

}  // namespace staging
