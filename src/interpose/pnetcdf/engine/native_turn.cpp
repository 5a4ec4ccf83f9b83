// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/native_turn.hpp>

#include <base/fd.hpp>

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <new>

namespace interpose {

namespace {

constexpr std::size_t kDescriptors = 2;  // that MPI-IO has at once: the file, and for a moment what ranks share

/// What the threads that take turns have in common.
struct Common {
  std::mutex turn;
  std::array<nessie::Fd, kDescriptors> reserve;
};

Common &common() {
  static Common common;
  return common;
}

bool fill_reserve() {
  auto &reserve = common().reserve;
  for (auto &descriptor : reserve)
    if (!descriptor) descriptor.reset(::eventfd(0, EFD_CLOEXEC));
  return std::ranges::all_of(reserve, &nessie::Fd::valid);
}

}  // namespace

NativeTurn::NativeTurn() : lock_(common().turn) {}

NativeTurn::~NativeTurn() {
  if (!lock_) lock_.lock();
  (void)fill_reserve();
}

bool NativeTurn::lend_reserve() {
  if (!fill_reserve()) return false;
  for (auto &descriptor : common().reserve) descriptor.reset();
  return true;
}

void NativeTurn::let_others() { lock_.unlock(); }

void NativeTurn::begin_in_child() { new (&common().turn) std::mutex; }

}  // namespace interpose
