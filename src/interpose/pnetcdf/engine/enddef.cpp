// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/enddef.hpp>
#include <interpose/pnetcdf/engine/mark.hpp>

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/fallback.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/hints.hpp>
#include <interpose/pnetcdf/engine/modes.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/patience.hpp>
#include <interpose/pnetcdf/engine/safe_mode.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

namespace interpose {

namespace {

staging::HeaderResult end_definitions_as_root(File &file, const EndDefLayout &layout) {
  staging::EndDefArgs args{file.token(),   file.take_log(),  layout.given,   layout.h_minfree,
                           layout.v_align, layout.v_minfree, layout.r_align, file.num_records};
  auto result = Session::get().client()->enddef(args, file.is_new);
  if (result) return std::move(*result);
  if (may_be_made_natively(file, result.error())) return failure(kLeftNative);
  return failure(file.lost(result.error(), "ending define mode", NC_EWRITE));
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
  const bool has_written = !file.is_new && !file.is_settled;
  if (!file.is_new) agree(file);  // nobody has written to a new one
  file.ranks().restart_order();
  end_mirror(file, layout);
  SameMirrors mirrors(file);
  staging::HeaderResult header;
  if (file.ranks().is_root()) header = end_definitions_as_root(file, layout);
  mirrors.finish(header);
  if (header.nc_error == kLeftNative) return make_natively(file, layout);
  if (header.nc_error != NC_NOERR) return file.mirror.redefine(), header.nc_error;
  const bool mirrored = take_over(file, header);
  file.num_records = std::max(file.num_records, header.num_records);
  file.hints_in_use = std::move(header.hints);
  file.may_be_left = file.is_new && may_be_left(file, layout);
  if (file.may_be_left && boards().are_complete()) file.writes_when_made = boards().count_of_writes(file.identity);
  file.in_define_mode = file.independent = file.is_new = false;
  if (mirrored) file.count_header_written();
  if (has_written && file.ranks().is_root()) mark_all(file);
  file.note_settled();
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

}  // namespace interpose
