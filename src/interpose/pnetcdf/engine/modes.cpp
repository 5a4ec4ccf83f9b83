// SPDX-License-Identifier: BSD-3-Clause
// Define mode and data mode, collective and independent, and what is made known between them.
#include <interpose/pnetcdf/engine/modes.hpp>

#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/hints.hpp>
#include <interpose/pnetcdf/engine/native_turn.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/patience.hpp>
#include <interpose/pnetcdf/engine/safe_mode.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>
#include <xdr/codec.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

namespace interpose {

void agree(File &file) {
  file.raise_records(file.ranks().max(file.num_records));
  file.ranks().await_notes();
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

// --- leaving define mode -------------------------------------------------------------------------------------------------

staging::HeaderResult failure(int code) {
  staging::HeaderResult result;
  result.nc_error = code;
  return result;
}

namespace {

staging::HeaderResult end_definitions_as_root(File &file, const EndDefLayout &layout) {
  staging::EndDefArgs args{file.token(),   file.take_log(),  layout.given,   layout.h_minfree,
                           layout.v_align, layout.v_minfree, layout.r_align, file.num_records};
  auto result = Session::get().client()->enddef(args, file.is_new);
  return result ? std::move(*result) : failure(file.lost(result.error(), "ending define mode", NC_EWRITE));
}

/// Opening a mirror again costs each rank about as much as a put. A new file's own mirror will do, unless it fills.
void end_mirror(File &file, const EndDefLayout &layout) {
  file.keep_fill_modes();
  if (!file.is_new || file.fills()) return;
  file.mirror.end_define({layout.h_minfree, layout.v_align, layout.v_minfree, layout.r_align});
}

/// A number that other bytes, or another number of them, very probably do not have. Positive.
std::int64_t digest(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t sum = bytes.size() * kFactor;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof sum))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    sum = std::rotl((sum ^ word) * kFactor, 29);
  }
  return static_cast<std::int64_t>(sum * kFactor >> 1);
}

/// Whether the mirrors of all ranks have come to the same header by themselves: told while root waits for the server.
/// Nobody needs the file's then, if it is root's.
class SameMirrors {
 public:
  explicit SameMirrors(File &file) : file_(file), header_(file.mirror.header()) {
    if (!file.is_new) return;
    const auto mine = digest(header_);
    facts_ = {header_.empty() ? 1 : 0, mine, -mine};
    request_ = file.ranks().start_max(facts_);
  }
  SameMirrors(const SameMirrors &) = delete;

  /// Takes root's answer, for all, without the header if no rank needs it.
  void finish(staging::HeaderResult &header) {
    if (request_ != MPI_REQUEST_NULL) wait_patiently(request_);
    const bool same = facts_[0] == 0 && facts_[1] == -facts_[2];
    if (file_.ranks().is_root() && same && std::ranges::equal(header_, header.header)) header.header.clear();
    share(file_.ranks(), header);
  }

 private:
  File &file_;
  std::span<const std::byte> header_;
  std::array<std::int64_t, 3> facts_ = {1, 0, 0};
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// Gives the mirrors of all ranks the file's new header. False: a process cannot have a mirror.
bool take_over(File &file, const staging::HeaderResult &header) {
  if (header.header.empty()) return true;
  const Info info(file.opened_as().hints);
  const bool here = file.mirror.open(header.header, NC_WRITE, info.get());
  if (file.ranks().max(here ? 0 : 1) == 0) return true;
  if (!here) nessie::log::error("{}: this process cannot hold its new header", file.opened_as().path);
  file.mirror.drop();
  return false;
}

/// To native PnetCDF, by its first collective write (leaving.hpp): a new file. The same on all ranks.
bool may_be_left(const File &file, const EndDefLayout &layout) {
  return file.may_be_left && !layout.given && !file.fills() && has_plain_name(file.opened_as());
}

}  // namespace

int end_definitions(File &file, const EndDefLayout &layout) {
  if (!file.is_new) agree(file);  // nobody has written to a new one
  file.ranks().restart_order();
  end_mirror(file, layout);
  SameMirrors mirrors(file);
  staging::HeaderResult header;
  if (file.ranks().is_root()) header = end_definitions_as_root(file, layout);
  mirrors.finish(header);
  if (header.nc_error != NC_NOERR) return file.mirror.redefine(), header.nc_error;
  const bool mirrored = take_over(file, header);
  file.num_records = std::max(file.num_records, header.num_records);
  file.hints_in_use = std::move(header.hints);
  file.may_be_left = file.is_new && may_be_left(file, layout);
  if (file.may_be_left && boards().are_complete()) file.writes_when_made = boards().count_of_writes(file.identity);
  file.in_define_mode = file.independent = file.is_new = false;
  if (mirrored) file.count_header_written();
  return mirrored ? NC_NOERR : NC_EFILE;
}

int on_enddef(File &file) {
  const Stopwatch stopwatch(file.spent);
  if (file.is_native()) return write_natively(file, [&] { return ncmpi_enddef(file.id()); });
  return file.in_define_mode ? end_definitions(file, {}) : NC_ENOTINDEFINE;
}

int on__enddef(File &file, MPI_Offset h_minfree, MPI_Offset v_align, MPI_Offset v_minfree, MPI_Offset r_align) {
  const Stopwatch stopwatch(file.spent);
  if (file.is_native())
    return write_natively(file, [&] { return ncmpi__enddef(file.id(), h_minfree, v_align, v_minfree, r_align); });
  if (!file.in_define_mode) return NC_ENOTINDEFINE;
  if (int error = agree_on_enddef(file, {h_minfree, v_align, v_minfree, r_align})) return error;
  if (h_minfree < 0 || v_align < 0 || v_minfree < 0 || r_align < 0) return NC_EINVAL;
  return end_definitions(file, {true, h_minfree, v_align, v_minfree, r_align});
}

// --- entering it again -----------------------------------------------------------------------------------------------------

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
  if (file.has_record_variables())
    agree_on_records(file);
  else
    file.ranks().note_written(Communicator::kAnyVariable, file.num_records);
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
  if (file.independent && file.has_record_variables())
    agree_on_records(file);
  else
    agree(file);
  const int status = file.ranks().from_root([&] {
    return file.code_of(Session::get().client()->sync(file.token(), file.num_records), "ncmpi_sync", NC_EWRITE);
  });
  return status != NC_NOERR ? status : file.take_error();
}

}  // namespace interpose
