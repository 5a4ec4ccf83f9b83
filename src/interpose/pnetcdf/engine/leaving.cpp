// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/leaving.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/native.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/regions.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/storage.hpp>
#include <services/staging/handle.hpp>

#include <pnetcdf.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace interpose {

namespace {

constexpr std::int64_t kWorthOpeningAgain = 16 << 20;
constexpr std::int64_t kLargeReadBytes = 256 << 10, kLargeWriteBytes = 1 << 20;

/// Whether native PnetCDF writes through ROMIO. Open MPI's own layer, its default, takes longer than a server.
bool is_through_romio() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  if (!std::string_view(version.data()).starts_with("Open MPI")) return true;
  const char *chosen = std::getenv("OMPI_MCA_io");
  const std::string_view layer = chosen != nullptr ? chosen : "";
  return layer.starts_with("romio") || layer == "^ompio";
}

/// A rank's part of a call: whether native PnetCDF can carry it out at once, without the other processes' help.
struct Part {
  std::int64_t bytes = 0;
  bool is_run = true;

  Part(File &file, const Access &access, int error) {
    if (error != NC_NOERR) return;
    const auto region = region_of(file, access);
    bytes = region.elements() * file.variable(access.varid)->layout.element_bytes;
    is_run = region.bounds.size() == region.elements();
  }
  bool is_large(std::int64_t least_bytes) const { return bytes == 0 || (is_run && bytes >= least_bytes); }
};

int leave(File &file, const Reason &reason, Again again) {
  const int failed = hand_back(file, reason, again);
  return failed != NC_NOERR ? failed : kLeftNative;
}

int consider_reading(File &file, const Part &part) {
  if (file.ranks().max_now(part.is_large(kLargeReadBytes) ? 0 : 1) != 0) return NC_NOERR;
  return leave(file, {"auto: it is only read, in large pieces, which takes no less by way of a server", true},
               Again::kOpened);
}

/// Whether a new file is where it was made, and nobody has written to it yet, or asked this rank to.
bool is_untouched(File &file) {
  if (!file.writes_when_made || *file.writes_when_made != boards().count_of_writes(file.identity)) return false;
  const bool is_there =
      !file.ranks().is_root() || staging::identity_of(file.opened_as().names.front()) == file.identity;
  return is_there && !boards().was_opened_to_write(file.identity) && file.requests.size() == 0;
}

int consider_writing(File &file, const Part &part) {
  enum { kNothing, kSuits, kRefused };
  const bool suits = part.is_large(kLargeWriteBytes) && is_untouched(file) && Session::get().client()->is_crowded();
  if (file.ranks().max_now(!suits ? kRefused : part.bytes > 0 ? kSuits : kNothing) != kSuits) return NC_NOERR;
  return leave(file,
               {"auto: it is written in large pieces to a file system in memory, and the program takes all cores: that "
                "takes no less by way of a server",
                true},
               Again::kMade);
}

}  // namespace

bool may_be_left(File &file) {
  return Session::get().is_auto() && !file.writable && file.data_bytes() >= kWorthOpeningAgain;
}

bool may_be_left(const std::string &path) {
  return Session::get().is_auto() && Session::get().client()->is_crowded() && is_through_romio() &&
         nessie::is_in_memory(path);
}

int consider_leaving(File &file, const Access &access, int error) {
  file.may_be_left = false;
  if (file.writable && access.is_read()) return NC_NOERR;
  const Part part(file, access, error);
  return file.writable ? consider_writing(file, part) : consider_reading(file, part);
}

}  // namespace interpose
