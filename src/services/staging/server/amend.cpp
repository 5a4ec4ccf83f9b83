// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

Result<NcResult> Server::amend(Request &, const AmendArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  return NcResult{on_io([&] { return file->native->amend(args.definitions); })};
}

}  // namespace staging
