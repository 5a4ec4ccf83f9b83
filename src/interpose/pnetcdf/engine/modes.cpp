// SPDX-License-Identifier: BSD-3-Clause
// Define mode and data mode, collective and independent, and what is made known between them. Leaving define mode:
// enddef.cpp.
#include <interpose/pnetcdf/engine/mark.hpp>
#include <interpose/pnetcdf/engine/modes.hpp>

#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/native_turn.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <xdr/codec.hpp>

#include <array>
#include <utility>
#include <vector>

namespace interpose {

void agree(File &file) {
  const auto all = file.ranks().max(std::array<std::int64_t, 2>{file.num_records, file.has_put_fixed ? 1 : 0});
  file.raise_records(all[0]);
  file.ranks().await_notes();
  file.has_put_fixed = false;
  if (all[1] != 0) mark_fixed_variables(file);
}

void share(Communicator &ranks, staging::HeaderResult &header) {
  if (ranks.size() == 1) return;
  std::vector<std::byte> bytes;
  if (ranks.is_root()) bytes = xdr::encode(header);
  ranks.broadcast(bytes);
  if (ranks.is_root()) return;
  if (auto decoded = xdr::decode<staging::HeaderResult>(bytes))
    header = std::move(*decoded);
  else
    header.nc_error = NC_EFILE;
}

staging::HeaderResult failure(int code) {
  staging::HeaderResult result;
  result.nc_error = code;
  return result;
}

// --- entering define mode again -----------------------------------------------------------------------------------------------------

namespace {

/// The fill mode of new variables is not in the header: neither the mirror nor a server that opened the file again has
/// it.
void keep_filling(File &file) {
  ncmpi_set_fill(file.id(), NC_FILL, nullptr);
  staging::Definition definition;
  definition.kind = staging::DefinitionKind::kSetFill;
  definition.type = NC_FILL;
  file.log(std::move(definition));
}

}  // namespace

int on_redef(File &file) {
  const int error = ncmpi_redef(file.id());
  if (error != NC_NOERR || file.is_native()) return error;
  if (file.independent) leave_independent_mode(file);
  file.in_define_mode = true;
  file.may_be_left = false;
  if (file.fill_mode == NC_FILL) keep_filling(file);
  return NC_NOERR;
}

// --- collective and independent data mode ------------------------------------------------------------------------------------

namespace {

/// From independent mode. Natively root writes the number of records, whether or not it has changed.
void agree_on_records(File &file) {
  const auto known = file.num_records;
  agree(file);
  if (file.num_records == known) file.count_records_written();
}

}  // namespace

void leave_independent_mode(File &file) {
  file.independent = false;
  if (!file.writable) return;
  file.note_unsettled();  // also what was put since a sync
  file.ranks().note_written(Communicator::kAnyVariable, file.num_records);
  if (file.has_record_variables()) agree_on_records(file);
}

namespace {

/// Opens the file once more, for this process alone.
int begin_natively(const File &file) {
  const NativeTurn turn;
  return ncmpi_begin_indep_data(file.id());
}

}  // namespace

// The mirror takes no part: native PnetCDF would open its file once more, by a name that it no longer has.
int on_begin_indep_data(File &file) {
  if (file.is_native()) return begin_natively(file);
  if (file.in_define_mode) return NC_EINDEFINE;
  if (file.independent) return NC_NOERR;
  file.ranks().await_notes();
  file.ranks().wait_until_read();
  file.independent = true;
  if (file.writable) file.note_unsettled();
  file.may_be_left = file.may_be_left && !file.writable;
  return NC_NOERR;
}

int on_end_indep_data(File &file) {
  if (file.is_native()) return ncmpi_end_indep_data(file.id());
  if (file.in_define_mode) return NC_EINDEFINE;
  if (file.independent) leave_independent_mode(file);
  return NC_NOERR;
}

// --- making things known -----------------------------------------------------------------------------------------------------

int on_sync_numrecs(File &file) {
  if (file.is_native()) return ncmpi_sync_numrecs(file.id());
  if (file.in_define_mode) return NC_EINDEFINE;
  if (!file.has_record_variables()) return NC_NOERR;
  if (!file.writable) return NC_EPERM;
  if (file.independent) agree_on_records(file);
  return NC_NOERR;
}

int on_flush(File &file) {
  return file.is_native() ? write_natively(file, [&] { return ncmpi_flush(file.id()); }) : NC_NOERR;
}

int on_sync(File &file) {
  if (file.is_native()) return write_natively(file, [&] { return ncmpi_sync(file.id()); });
  if (file.in_define_mode) return NC_EINDEFINE;
  if (!file.writable) return NC_NOERR;
  if (file.independent) file.ranks().note_written(Communicator::kAnyVariable, file.num_records);
  if (file.independent && file.has_record_variables())
    agree_on_records(file);
  else
    agree(file);
  const int status = file.ranks().from_root([&] {
    if (!file.is_settled) mark_all(file);
    return file.code_of(Session::get().client()->sync(file.token(), file.num_records), "ncmpi_sync", NC_EWRITE);
  });
  if (status == NC_NOERR && !file.independent) file.note_settled();  // others may put, and nobody hears of it
  return status != NC_NOERR ? status : file.take_error();
}

}  // namespace interpose
