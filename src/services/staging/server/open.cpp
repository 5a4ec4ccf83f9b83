// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <services/staging/server/opening.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

Result<HeaderResult> Server::open(Request &request, const OpenArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  if (finishing_) return shutting_down();
  HeaderResult result;
  if (const auto file = find(args.file)) {
    if (auto adopted = adopt(request, *file); !adopted.ok()) return adopted.error();
    result.nc_error = read_header(*file, result);
    return result;
  }
  const Opening opening(opening_, closing_changed_);
  auto descriptor = obtain_descriptor(request, args.path, args.handle, (args.omode & NC_WRITE) != 0);
  if (!descriptor.ok()) return descriptor.error();
  auto opened = on_io([&] { return NativeFile::open(std::move(*descriptor), args.omode, args.hints); });
  const int harmless = opened.file ? opened.nc_error : NC_NOERR;
  result.nc_error = add_file(request, args.file, args.path, std::move(opened), args.handle, args.processes,
                             durability_of(args.durability, args.path));
  if (result.nc_error != NC_NOERR) return result;
  const auto file = find(args.file);
  if (file) result.nc_error = read_header(*file, result);
  if (file && result.nc_error != NC_NOERR) close_unused(file);
  if (file && result.nc_error == NC_NOERR) begin_data_mode(*file, true);
  if (file && result.nc_error == NC_NOERR)
    if (auto kept = keep_file(file, args, false, request.caller()); !kept.ok()) return kept.error();
  if (result.nc_error == NC_NOERR) result.nc_error = harmless;
  return result;
}

/// Closes a file of which nothing is known but that it can be opened.
void Server::close_unused(const File &file) {
  file->ended = true;
  file->keep_clean(false);
  file->forget_clean();
  if (files_.erase(file->token) > 0) on_io([&] { return file->native->abort(); });
  end_marking(*file);
}

/// Does `first`, then reads the header for the clients, and the variables for this server: one task of the I/O thread,
/// since between two there may be a drain.
int Server::read_header(OpenFile &file, HeaderResult &result) {
  std::vector<Variable> variables;
  const int error = on_io([&] {
    if (const int failed = file.native->describe(result); failed != NC_NOERR) return failed;
    return file.native->variables(variables);
  });
  if (error != NC_NOERR) return error;
  file.keeps_clean = !file.may_be_written_past();
  file.set_variables(drainer_.cache(), std::move(variables));
  shelf_.take(file);
  file.records_in_file = std::max(file.records_in_file, result.num_records);
  file.raise_num_records(result.num_records);
  return NC_NOERR;
}

}  // namespace staging
