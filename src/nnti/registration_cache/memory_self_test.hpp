// SPDX-License-Identifier: BSD-3-Clause
// Tests whether the calls that change memory are really seen, on a page that nobody uses. Those that are seen (but for
// brk) never reach the kernel, so that no filter of system calls can take offence.
#pragma once

#include "nnti/registration_cache/code.hpp"

#include <nessie/result.hpp>

#include <cstddef>

namespace nnti::self_test {

/// Makes every such call as a program does, and through libc's syscall(), frees a large block, and asks for a break
/// that no kernel grants. kUnsupported, naming the first call that is not seen. `page` is one that nobody uses. One at
/// a time.
nessie::Status run(std::byte *page);

/// Whether `call` belongs to the test; it has been answered then. Called for every call that is seen.
bool answers(probe::SystemCall &call) noexcept;
/// `block` is about to be freed.
void saw_free(std::uintptr_t block) noexcept;

}  // namespace nnti::self_test
