// SPDX-License-Identifier: BSD-3-Clause
// Which pages a system call takes away, empties or replaces.
#pragma once

#include "nnti/registration_cache/address_range.hpp"
#include "nnti/registration_cache/code.hpp"

#include <array>

namespace nnti {

/// The pages that `call` is about to change; none: it leaves the memory as it is. Conservative: pages of which it is
/// not known beforehand (a System V segment's, those of a mapping that may move) count as changed. Allocates nothing.
std::array<AddressRange, 2> pages_changed_by(const probe::SystemCall &call) noexcept;

/// False: it certainly changes none.
bool may_change_pages(const probe::SystemCall &call) noexcept;

}  // namespace nnti
