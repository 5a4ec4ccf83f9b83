// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <functional>

namespace staging {

Result<NcResult> Server::sync(Request &, const FileArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return unknown(args.file);
  await_what_was_sent(*file);
  const FileGate::Shared shared(file->gate);
  file->raise_num_records(args.num_records);
  const int failed = drainer_.flush_for_program(*file);
  if (const int error = file->take_error(); error != NC_NOERR) return NcResult{error};
  if (drainer_.fails_fast() && failed != NC_NOERR) return NcResult{failed};
  return NcResult{tell_records(*file, &NativeFile::sync)};
}

/// Has the header say how many records there are.
int Server::tell_records(OpenFile &file, int (NativeFile::*tell)(std::int64_t)) {
  const auto records = file.num_records, told = file.records_to_tell();
  const int error = on_io([&] { return std::invoke(tell, *file.native, told); });
  if (error == NC_NOERR) file.records_in_file = std::max(file.records_in_file, records);
  return error;
}

}  // namespace staging
