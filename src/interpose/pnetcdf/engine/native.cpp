// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/mark.hpp>
#include <interpose/pnetcdf/engine/native.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/completion.hpp>
#include <interpose/pnetcdf/engine/copy_header.hpp>
#include <interpose/pnetcdf/engine/file_table.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/modes.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>
#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <sys/stat.h>

#include <utility>

namespace interpose {

namespace {

/// Says once that the file is native, and tells the servers, for their report.
void announce(File &file, const Reason &reason) {
  if (!file.ranks().is_root()) return;
  auto &session = Session::get();
  const auto text =
      fmt::format("{} is not staged, but read and written by native PnetCDF: {}", file.opened_as().path, reason.why);
  const bool is_known = session.servers_died() && !session.is_first_to_tell();
  reason.is_choice || is_known ? nessie::log::info("{}", text) : nessie::log::warning("{}", text);
  if (!session.connected() || session.servers_died()) return;
  auto told = Session::get().client()->note_native(file.opened_as().names.front(), reason.why, reason.is_choice);
  if (!told) nessie::log::info("the staging server does not know: {}", told.error().to_string());
}

/// Returns on every rank when the servers have nothing of this file left to write, and no rank a mirror.
void settle_for_all(File &file) {
  file.mirror.drop();
  if (file.ranks().is_root() && Session::get().connected()) settle(file.opened_as());
  file.ranks().max(0);
}

constexpr int kUntouched = -2;

/// What native PnetCDF made of `file`, for the program.
void take(File &file, int native_id, int *ncidp) {
  if (native_id >= 0) {
    auto native = std::make_unique<File>(native_id, file.ranks(), identity_of_open(file.opened_as()));
    if (Session::get().servers_died()) Session::get().settle_no_more(native->identity);
    *ncidp = files().add(native);
  } else if (native_id != kUntouched) {
    *ncidp = native_id;
  }
}

}  // namespace

std::string why_not_staged(int cmode) {
  constexpr int kTwoFormats = NC_64BIT_OFFSET | NC_64BIT_DATA;
  if (!Session::get().connected()) return Session::get().reason();
  if (Session::get().servers_died()) return kServersDied;
  if ((cmode & NC_NETCDF4) != 0) return "it is a netCDF-4 file";
  // What native PnetCDF refuses before it makes a file.
  if ((cmode & kTwoFormats) == kTwoFormats) return "it is of two formats at once";
  if (files().is_full()) return "PnetCDF has no id left for it";
  return {};
}

namespace {

/// `make` is ncmpi_create or ncmpi_open.
template <class Make>
int go_native(Make make, File &file, MPI_Comm comm, int mode, MPI_Info info, int *ncidp, const Reason &reason) {
  settle_for_all(file);
  int native_id = kUntouched;
  auto turn = turn_for(file);
  const int error = make(comm, file.opened_as().path.c_str(), mode, info, &native_id);
  turn.reset();
  take(file, native_id, ncidp);
  if (native_id >= 0) announce(file, reason);
  return error;
}

}  // namespace

int create_natively(File &file, MPI_Comm comm, int cmode, MPI_Info info, int *ncidp, const Reason &reason) {
  return go_native(ncmpi_create, file, comm, cmode, info, ncidp, reason);
}

int open_natively(File &file, MPI_Comm comm, int omode, MPI_Info info, int *ncidp, const Reason &reason) {
  return go_native(ncmpi_open, file, comm, omode, info, ncidp, reason);
}

std::optional<NativeTurn> turn_for(const File &file) {
  if (file.is_alone()) return std::optional<NativeTurn>(std::in_place);
  return std::nullopt;
}

// --- an open file ------------------------------------------------------------------------------------------------------------

namespace {

int close_durably(File &file) {
  agree(file);
  return file.ranks().from_root([&] {
    if (file.writable && !file.is_settled) mark_all(file);
    auto closed = Session::get().client()->close(file.token(), file.num_records, staging::Closing::kDurable,
                                                 file.ranks().order());
    return file.code_of(closed, "writing its data", NC_EWRITE);
  });
}

/// What the program asks for goes on from what it was when the file was staged.
void forget_sizes_of_opening(File &file) {
  MPI_Offset put = 0, get = 0;
  ncmpi_inq_put_size(file.id(), &put);
  ncmpi_inq_get_size(file.id(), &get);
  file.put_bytes -= put;
  file.get_bytes -= get;
}

/// All processes have what they open, or each opens the file by its name: who cannot would be waited for.
void borrow_for_all(File &file, int omode, NativeHandle &handle) {
  const bool has = borrow(file, omode, handle);
  if (file.ranks().max(has ? 0 : 1) != 0) handle.named.reset();
}

/// On all ranks, or on none: an id that not all of them have is lost, because to close it would take all of them.
int open_for_all(File &file, int omode, MPI_Info info, NativeHandle &handle) {
  NativeTurn turn;
  (void)turn.lend_reserve();
  const auto name = name_to_open(file, omode, handle);
  if (!file.is_alone()) turn.let_others();
  if (file.ranks().max(name.empty() ? 1 : 0) != 0) return NC_EFILE;
  const int error = ncmpi_open(file.ranks().get(), name.c_str(), omode, info, &handle.id);
  if (file.ranks().max(handle.id < 0 ? 1 : 0) == 0) return error;
  handle.id = -1;
  return error != NC_NOERR ? error : NC_EFILE;
}

}  // namespace

namespace {

/// Whether the file is still there by its name, and nothing but its header has been written to it. Root's answer.
bool is_as_made(File &file) {
  struct stat status {};
  MPI_Offset header_bytes = 0;
  const auto &name = file.opened_as().names.front();
  const bool is_it = file.ranks().is_root() && !boards().may_hold(file.identity) &&
                     staging::identity_of(name) == file.identity && ::stat(name.c_str(), &status) == 0 &&
                     ncmpi_inq_header_size(file.mirror.id(), &header_bytes) == NC_NOERR &&
                     status.st_size == header_bytes;
  return file.ranks().max_now(is_it ? 1 : 0) != 0;
}

int copy_fill_modes(File &file, int id) {
  int error = NC_NOERR;
  for (int varid = 0; error == NC_NOERR && file.variable(varid) != nullptr; ++varid)
    if (!file.no_fill(varid)) error = ncmpi_def_var_fill(id, varid, 0, nullptr);
  return error;
}

int end_define(int id, const EndDefLayout &layout) {
  if (!layout.given) return ncmpi_enddef(id);
  return ncmpi__enddef(id, layout.h_minfree, layout.v_align, layout.v_minfree, layout.r_align);
}

/// What the program did before, natively.
int make_again(File &file, NativeHandle &handle, const EndDefLayout &layout = {}) {
  const OpenedAs &as = file.opened_as();
  const Info info(as.hints);
  auto turn = turn_for(file);
  int error =
      ncmpi_create(file.ranks().get(), as.names.front().c_str(), as.mode & ~NC_NOCLOBBER, info.get(), &handle.id);
  if (error == NC_NOERR) error = copy_header(file.mirror.id(), handle.id);
  if (error == NC_NOERR) error = copy_fill_modes(file, handle.id);
  if (error == NC_NOERR) error = end_define(handle.id, layout);
  turn.reset();
  file.mirror.drop();
  file.put_bytes = file.get_bytes = 0;
  return error;
}

int open_again(File &file, NativeHandle &handle) {
  const OpenedAs &as = file.opened_as();
  const Info info(as.hints);
  file.mirror.drop();
  return open_for_all(file, (as.mode & NC_SHARE) | (file.writable ? NC_WRITE : NC_NOWRITE), info.get(), handle);
}

}  // namespace

int open_natively_again(File &file, const Reason &reason) {
  announce(file, reason);
  file.ranks().await_notes();
  file.ranks().wait_until_read();
  NativeHandle handle;
  const int back = open_again(file, handle);
  if (handle.id < 0) return back;
  if (file.attached_buffer) ncmpi_buffer_attach(handle.id, file.attached_buffer->size());
  file.become_native(handle.id, std::move(handle.named));
  forget_sizes_of_opening(file);
  return back;
}

int make_natively_again(File &file, const EndDefLayout &layout, const Reason &reason) {
  announce(file, reason);
  NativeHandle handle;
  const int back = make_again(file, handle, layout);
  if (handle.id >= 0) file.become_native(handle.id, std::move(handle.named));
  return back;
}

int hand_back(File &file, const Reason &reason, Again again) {
  announce(file, reason);
  const int pending = complete(file, NC_REQ_ALL, nullptr, nullptr, true);
  NativeHandle handle;
  borrow_for_all(file, file.writable ? NC_WRITE : NC_NOWRITE, handle);
  const int closed = close_durably(file);
  const bool is_made = again == Again::kMade && closed == NC_NOERR && is_as_made(file);
  const int back = is_made ? make_again(file, handle) : open_again(file, handle);
  if (handle.id < 0) return closed != NC_NOERR ? closed : back;
  if (file.attached_buffer) ncmpi_buffer_attach(handle.id, file.attached_buffer->size());
  file.become_native(handle.id, std::move(handle.named));
  if (!is_made) forget_sizes_of_opening(file);
  if (is_made) return back;
  return closed != NC_NOERR ? closed : pending;
}

}  // namespace interpose
