// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/leaving.hpp>

#include <interpose/pnetcdf/engine/native.hpp>
#include <interpose/pnetcdf/engine/regions.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <pnetcdf.h>

namespace interpose {

namespace {

constexpr std::int64_t kWorthOpeningAgain = 16 << 20;
constexpr std::int64_t kLargeRunBytes = 256 << 10;

/// Whether native PnetCDF reads it at once, without the other processes' help.
bool is_large_run(File &file, const Access &access) {
  const auto region = region_of(file, access);
  const auto bytes = region.elements() * file.variable(access.varid)->layout.element_bytes;
  return bytes == 0 || (region.bounds.size() == region.elements() && bytes >= kLargeRunBytes);
}

}  // namespace

bool may_be_left(File &file) {
  const bool is_auto = Session::get().client()->mode() == staging::Mode::kAuto;
  return is_auto && !file.writable && file.data_bytes() >= kWorthOpeningAgain;
}

int consider_leaving(File &file, const Access &access, int error) {
  file.may_be_left = false;
  const bool suits = error != NC_NOERR || is_large_run(file, access);
  if (file.ranks().max_now(suits ? 0 : 1) != 0) return NC_NOERR;
  const int failed =
      hand_back(file, {"auto: it is only read, in large pieces, which takes no less by way of a server", true});
  return failed != NC_NOERR ? failed : kLeftNative;
}

}  // namespace interpose
