// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <services/staging/server/opening.hpp>

#include <services/staging/handle.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

Result<nessie::Fd> Server::obtain_descriptor(Request &request, const std::string &path, const FileHandle &handle,
                                             bool writable) {
  Result<nessie::Fd> file = nessie::Fd();
  if (handle.descriptor == 0) {
    if (runtime_.can_give_descriptors(request.caller()))
      return Error{Code::kRefused, "a process of this node gives what it has opened, and names nothing"};
    on_io([&] { return file = open_by_name(path, handle, writable), 0; });
  } else {
    auto given = request.take_descriptor(handle.descriptor);
    if (!given.ok()) return given.error();
    file = nessie::Fd(*given);
    if (auto usable = check_given(*given, writable); !usable.ok()) return usable.error();
  }
  if (file.ok() && file->get() >= options_.descriptors) return no_descriptors();
  return file;
}

/// Makes `opened` a file of the program's. NC_NOERR, or the native code if there is none.
int Server::add_file(Request &request, FileToken token, const std::string &path, NativeFile::Opened opened,
                     const FileHandle &handle, std::uint32_t processes, Durability durability) {
  if (!opened.file) return opened.nc_error;
  if (find(token)) return on_io([&] { return opened.file->abort(), NC_EEXIST; });  // opened twice at the same time
  const auto file = make_file(token, path, std::move(opened.file), request.caller(), processes, durability);
  file->was_given = handle.descriptor != 0;
  if (file->native->is_new()) note_created(*file);
  count(request.caller(), &ReportResult::files);
  // The program may have died while the file was opened.
  if (std::find(peers_.begin(), peers_.end(), request.caller()) == peers_.end()) peer_lost(request.caller());
  return NC_NOERR;
}

Server::File Server::make_file(FileToken token, const std::string &path, std::unique_ptr<NativeFile> native,
                               nssi::PeerId owner, std::uint32_t processes, Durability durability) {
  const bool is_kept = durability != Durability::kMemory;
  auto file = std::make_shared<OpenFile>(runtime_, token, path, owner, is_kept ? nullptr : ledger_.get());
  file->durability = durability;
  file->identity = native->identity();
  file->job = account_of(owner);
  file->opened_s = seconds_now();
  file->processes = std::max(processes, 1U);
  file->is_direct = options_.mode == Mode::kDirect || file->durability == Durability::kInFile;
  file->board = board_.get();
  file->has_one_server = options_.servers == 1;
  file->in_define_mode = native->is_new();
  file->defined = !file->in_define_mode;
  file->native = std::move(native);
  if (drainer_.reads_back() && file->native->writable()) file->read_back = std::make_shared<ReadBack>();
  note_handle(*file);
  if (board_ && file->native->writable()) file->on_board = board_->enter(file->identity, file->is_kept());
  files_.emplace(token, file);
  begin_marking(*file);
  return file;
}

Result<NcResult> Server::create(Request &request, const CreateArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  if (finishing_) return shutting_down();
  if (const auto file = find(args.file)) return adopt(request, *file);
  const Opening opening(opening_, closing_changed_);
  auto file = obtain_descriptor(request, args.path, args.handle, true);
  if (!file.ok()) return file.error();
  auto opened = on_io([&] { return NativeFile::create(std::move(*file), args.cmode, args.hints); });
  const int error = add_file(request, args.file, args.path, std::move(opened), args.handle, args.processes,
                             durability_of(args.durability, args.path));
  const auto created = find(args.file);
  if (error != NC_NOERR || !created) return NcResult{error};
  const OpenArgs as{args.file, args.path, args.cmode, args.hints, {}, args.processes, args.durability};
  const auto kept = keep_file(created, as, true, request.caller());
  return kept.ok() ? Result<NcResult>(NcResult{}) : kept.error();
}

}  // namespace staging
