// SPDX-License-Identifier: BSD-3-Clause
// Probes in the C library's code: a function of ours sees the system calls that libc makes, whoever calls libc,
// libc's own malloc and free included. Symbol interposition and PLT patching do not see those.
//
// Design notes. Not the function's entry is replaced, as patchers usually do, but one instruction right at its system
// call; so nothing of the function (errno, variable arguments, brk's own bookkeeping) has to be made again. The jump
// leads to a thunk close by, which keeps every register, calls the handler, and goes on behind the system call if the
// handler has made it, or at it if not.
//
// Other threads may be running that code. Each probe is therefore one store of an aligned word, and replaces (part of)
// one instruction, so that no thread can stand inside of what is replaced:
//   x86-64   `mov $number, %eax` becomes `jmp thunk` (both of 5 bytes) where that lies within an aligned 8-byte word;
//            else its first two bytes become a short jump to the unused bytes behind the function, which hold `jmp
//            thunk`.
//   aarch64  `svc #0` becomes `b thunk`; the architecture allows exactly these two to replace each other.
// What does not have this shape is left alone and reported; then the caller has no probe there.
//
// A probe stays until the process ends.
#pragma once

#include "nnti/registration_cache/code_probe_arch.hpp"

#include <nessie/result.hpp>

#include <cstddef>
#include <vector>

namespace nnti::probe {

/// The function `name` of libc itself, whatever is put in front of it; empty if libc has none.
FunctionCode libc_function(const char *name);
/// The function `name` of a library, which then stays loaded; empty if the process has no such library, or it no such
/// function.
FunctionCode library_function(const char *library, const char *name);
/// What the loader calls around every change of the libraries (the debuggers' interface); empty if it does not say.
FunctionCode loader_event_function();

/// All probes of the process, and the memory that holds their thunks. Not thread-safe. Lives for ever.
class Prober {
 public:
  /// Maps memory for thunks within a jump's reach of libc. kUnsupported: none to be had, or libc cannot be found (the
  /// program is statically linked).
  nessie::Status open(Handler handler);
  /// Whether a probe at `code` could jump to its thunk. Libraries may lie anywhere.
  bool reaches(const FunctionCode &code) const;
  /// Puts probes at all system calls `number` (any: -1) in `code` that have none; none at all if the code does not look
  /// as it should (somebody else has patched it). kUnsupported, with the reason: there is one that cannot be probed.
  nessie::Result<std::vector<Site>> probe_calls(const FunctionCode &code, long number);
  /// Puts a probe at the entry of a function that does nothing but return; the handler is told kLoaderEvent.
  nessie::Result<Site> probe_return(const FunctionCode &code);
  /// Puts a probe back that somebody has undone.
  nessie::Status restore(const Site &site);
  /// A page of address space that nobody else uses, for self-tests.
  std::byte *spare_page() const { return spare_page_; }

 private:
  nessie::Result<Site> place(const FunctionCode &code, const arch::Spot &spot);

  std::byte *page_ = nullptr, *spare_page_ = nullptr;
  std::size_t used_bytes_ = 0;
};

}  // namespace nnti::probe
