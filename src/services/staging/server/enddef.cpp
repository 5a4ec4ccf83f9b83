// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>
#include <unistd.h>
#include <optional>
#include <utility>

namespace staging {

Result<HeaderResult> Server::enddef(Request &, const EndDefArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  HeaderResult result;
  const auto file = find(args.file);
  if (!file) {
    const auto unknown = this->unknown(args.file);
    return unknown.ok() ? Result<HeaderResult>(HeaderResult{NC_EBADID, {}, 0, 0, {}}) : unknown.error();
  }
  const FileGate::Alone alone(file->gate);
  if (args.number != 0 &&
      args.number <= file->definitions) {  // it was carried out before this server was started again
    result.nc_error = file->defined_as != NC_NOERR ? file->defined_as : read_header(*file, result);
    return result;
  }
  file->writes = {};  // all are done; clients count anew
  file->arrived_in.clear();
  drainer_.flush(*file, PageState::kUrgent);  // an error is told by what comes next: definitions stay
  file->forget_clean();
  file->raise_num_records(args.num_records);
  const auto undo = keep_undo(*file);
  std::optional<Ledger::Moving> moving;
  if (file->defined && undo.empty()) moving.emplace(ledger_.get(), file->path);
  const LoggedDefinition definition{false, args};
  if (auto kept = keep_definition(*file, definition); !kept.ok()) return kept.error();
  result.nc_error = end_define(*file, args, true);
  if (result.nc_error == NC_NOERR) result.nc_error = read_header(*file, result);
  note_write(*file);
  if (auto kept = keep_defined(*file, definition, result.nc_error); !kept.ok()) return kept.error();
  if (!undo.empty()) ::unlink(undo.c_str());
  file->in_define_mode = result.nc_error != NC_NOERR;
  file->defined = file->defined || !file->in_define_mode;
  if (!file->in_define_mode) begin_data_mode(*file, true);
  return result;
}

int Server::end_define(OpenFile &file, const EndDefArgs &args, bool tells_at_once) {
  bool again = false;
  return define(file, tells_at_once,
                [&](NativeFile &native) { return native.end_define(args, std::exchange(again, true)); });
}

/// insist() on something that native PnetCDF may not be able to repeat.
int Server::define(OpenFile &file, bool tells_at_once, const std::function<int(NativeFile &)> &call) {
  const auto attempt = [&] {
    auto outcome = try_natively(file, call);
    outcome.is_final = file.native->is_beyond_repair();
    return outcome;
  };
  return drainer_.insist(file, tells_at_once, attempt).nc_error;
}

}  // namespace staging
