// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

Result<NcResult> Server::fill_record(Request &, const FillRecordArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  const FileGate::Alone alone(file->gate);
  drainer_.flush(*file, PageState::kUrgent);
  file->native->allow_records(args.record + 1);
  file->forget_clean();
  const int error = on_io([&] { return file->native->fill_record(args.varid, args.record); });
  note_write(*file);
  return NcResult{error};
}

}  // namespace staging
