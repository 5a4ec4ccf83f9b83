// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/policy.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace interpose {

namespace {

constexpr std::int64_t kSmallBytes = 256 << 10;
constexpr std::uint64_t kFewFiles = 4, kTries = 3, kTriedAgain = 64;
constexpr double kForgetting = 1.02;  // what was fast once is believed a little less with each file

}  // namespace

void Policy::Cost::add(double seconds) { least_s = files++ == 0 ? seconds : std::min(least_s * kForgetting, seconds); }

std::optional<std::string> Policy::leaves_next_native() {
  if (small_in_row_ < kFewFiles) return std::nullopt;
  const bool tries = ++chosen_ % kTriedAgain == 0;
  if (native_.files < kTries) return "auto: the files of this program are small; it is tried what they take natively";
  if (native_is_better() == tries) return std::nullopt;
  return fmt::format("auto: the files of this program are small, and take {:.2g} ms natively, {:.2g} ms staged",
                     native_.least_s * 1e3, staged_.least_s * 1e3);
}

void Policy::note(const Closed &file) {
  if (file.bytes >= kSmallBytes) {
    *this = {};
    return;
  }
  ++small_in_row_;
  (file.was_staged ? staged_ : native_).add(file.seconds);
}

Policy &policy() {
  static Policy instance;
  return instance;
}

}  // namespace interpose
