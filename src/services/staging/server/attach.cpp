// SPDX-License-Identifier: BSD-3-Clause
// A file on the servers that are not its home: they hold the descriptor until they attach the file.
#include <services/staging/server/server.hpp>

#include <services/staging/server/opening.hpp>

#include <services/staging/handle.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

Result<NcResult> Server::hold(Request &request, const OpenArgs &args) {
  if (finishing_) return shutting_down();
  if (const auto open = find(args.file)) open->owner = request.caller();
  auto file = obtain_descriptor(request, args.path, args.handle, (args.omode & NC_WRITE) != 0);
  if (!file.ok()) return file.error();
  if (std::ranges::find(peers_, request.caller()) == peers_.end()) return NcResult{};  // it died meanwhile
  auto spare = duplicate(*file);
  if (!spare) return no_descriptors();
  if ((args.omode & OPENED_NEW) != 0) marks_.note_created(identity_of(file->get()), args.file);
  const auto omode = args.omode & ~OPENED_NEW;
  held_.insert_or_assign(args.file, Held{request.caller(), args.path, omode, args.hints, args.processes,
                                         args.durability, std::move(*file), std::move(spare)});
  recovered_.notify_all();
  return NcResult{};
}

/// One that is started again finds what it has left by what it holds.
Status Server::release(Request &, const FileToken &token) {
  if (!is_reopening_) return held_.erase(token), Status();
  runtime_.spawn([this, token] {
    if (await_recovered().ok()) held_.erase(token);
  });
  return {};
}

Result<NcResult> Server::attach(Request &request, const FileToken &token) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  if (finishing_) return shutting_down();
  if (const auto file = find(token)) return adopt(request, *file);
  const auto held = held_.find(token);
  if (held == held_.end() || !held->second.file)
    return Error{Code::kNotFound, "a file is to be attached that was not held: a fault of the client"};
  const Opening opening(opening_, closing_changed_);
  HeaderResult unused;
  auto given = std::move(held->second.file), spare = std::move(held->second.spare);
  const OpenArgs as{token, held->second.path,      held->second.omode,     held->second.hints,
                    {},    held->second.processes, held->second.durability};
  auto opened = on_io([&] {
    spare.reset();
    return NativeFile::open(std::move(given), as.omode, as.hints);
  });
  if (!opened.file) hold_again(token, std::move(given));
  int error =
      add_file(request, token, as.path, std::move(opened), {}, as.processes, durability_of(as.durability, as.path));
  const auto file = find(token);
  if (error == NC_NOERR && file) error = read_header(*file, unused);
  if (error != NC_NOERR && file) close_unused(file);
  if (error == NC_NOERR && file) begin_data_mode(*file, false);
  if (error == NC_NOERR && file)
    if (auto kept = keep_file(file, as, false, request.caller()); !kept.ok()) return kept.error();
  return NcResult{error};
}

/// Keeps what was attached, to be attached again, if the program still has it open.
void Server::hold_again(FileToken token, nessie::Fd file) {
  const auto held = held_.find(token);
  if (held == held_.end()) return;
  held->second.spare = duplicate(file);
  held->second.file = std::move(file);
}

}  // namespace staging
