// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

Result<NcResult> Server::fill_record(Request &, const FillRecordArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return unknown(args.file);
  const FileGate::Alone alone(file->gate);
  drainer_.flush(*file, PageState::kUrgent);
  file->native->allow_records(args.record + 1);
  file->forget_clean();
  const int error =
      insist(*file, true, [&](NativeFile &native) { return native.fill_record(args.varid, args.record); });
  note_write(*file);
  if (file->is_kept())
    if (auto kept = keep_filled(*file, args); !kept.ok()) return kept.error();
  return NcResult{error};
}

}  // namespace staging
