// SPDX-License-Identifier: BSD-3-Clause
// Registrars that know which physical memory they registered, and so can tell a translation that has become stale.
#pragma once

#include "nnti/registration_cache/registration_cache.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace nnti::test {

class Witness : public Registrar {
 public:
  /// Whether what `registration` reaches at the addresses of `memory` is the memory that is mapped there now. The
  /// caller owns `memory`, and has called mark() since it was mapped.
  virtual bool agrees(Registration &registration, std::span<std::byte> memory) = 0;
  /// Marks pages that are new.
  virtual void mark(std::span<std::byte> memory) = 0;
  /// Whether agrees() is meaningful for pages that malloc uses for itself too.
  virtual bool sees_parts_of_pages() const = 0;
};

/// The kernel's own registered memory (io_uring's fixed buffers): pages are pinned and reached by the kernel's list of
/// them, as a network adapter does it. agrees() writes through the address and reads through the registration.
/// Null, with the reason, where io_uring is not to be had.
std::unique_ptr<Witness> make_pinning_witness(std::string &reason, bool follows_mapping);

/// Remembers the mark of every page, as it was when it was registered; works everywhere.
std::unique_ptr<Witness> make_marking_witness(bool follows_mapping);

}  // namespace nnti::test
