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
  if (file->marked) marks_.note_filled(*file->marked, args.varid, args.record);
  file->forget_clean();
  if (file->read_back) prepare_to_fill(*file, args);
  const int error =
      insist(*file, true, [&](NativeFile &native) { return native.fill_record(args.varid, args.record); });
  note_write(*file);
  if (file->is_kept())
    if (auto kept = keep_filled(*file, args); !kept.ok()) return kept.error();
  return NcResult{error};
}

/// A filled record is not read back; and what has come before it cannot be put again behind it.
void Server::prepare_to_fill(OpenFile &file, const FillRecordArgs &args) {
  if (file.is_kept()) (void)sync_to_disk(file);
  const auto *known = file.find(args.varid);
  if (known == nullptr) return;
  const auto &variable = known->cached->variable;
  const auto extent = variable.extent_elements();
  const Interval filled{args.record * extent, (args.record + 1) * extent};
  on_io([&] { return file.read_back->forget(*file.native, variable, {&filled, 1}), 0; });
}

}  // namespace staging
