// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

// A file that was never defined is left empty, for the program to delete; any other is closed as it is.
Result<NcResult> Server::abort(Request &, const FileArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return unknown(args.file);
  const FileGate::Alone alone(file->gate);
  if (files_.erase(args.file) == 0) return NcResult{NC_EBADID};
  file->ended = true;
  closing_.push_back(file);
  drainer_.flush(*file, PageState::kUrgent);
  const int drained = file->take_error();
  const bool empties = file->native->is_new() && !file->created_over;
  const int error = on_io([&] { return empties ? file->native->close_and_empty() : file->native->abort(); });
  keep_gone(*file);
  note_closed(file);
  leave_closing(file);
  return NcResult{drained != NC_NOERR ? drained : error};
}

}  // namespace staging
