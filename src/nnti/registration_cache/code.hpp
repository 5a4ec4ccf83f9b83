// SPDX-License-Identifier: BSD-3-Clause
// Machine code, its words, and the system calls that it makes.
#pragma once

#include <cstddef>
#include <cstdint>

/// For what runs on threads that ThreadSanitizer has given up already: the last calls of a thread that ends. Such a
/// function calls only others of its kind.
#define NESSIE_NO_TSAN __attribute__((no_sanitize("thread")))

namespace nnti::probe {

/// A system call that is about to be made.
struct SystemCall {
  long number = 0;
  std::uintptr_t arguments[6] = {};
  long result = 0;
};

/// In place of a number: the loader is about to load or unload libraries, or has done so.
inline constexpr long kLoaderEvent = -1;

/// Runs on any thread, within malloc or free too: must not allocate, must not take a lock that somebody holds while
/// allocating. True: it has made the call (by raw_call), and `result` holds what the kernel answered. False: it is
/// made as usual.
using Handler = bool (*)(SystemCall &call) noexcept;

/// The system call, past libc and every probe. Returns what the kernel returns: -errno upon failure.
long raw_call(const SystemCall &call) noexcept;

/// The code of one function of libc.
struct FunctionCode {
  std::byte *begin = nullptr;
  std::size_t size_bytes = 0;
  std::byte *end() const { return begin + size_bytes; }
};

/// What one store changes, as far as other threads that run the code are concerned.
#if defined(__aarch64__)
using Word = std::uint32_t;
#else
using Word = std::uint64_t;
#endif

/// Code is read and written by these alone: ThreadSanitizer keeps no record of it, and its own functions would fail.
NESSIE_NO_TSAN inline Word load_code(const Word *word) noexcept { return __atomic_load_n(word, __ATOMIC_RELAXED); }

NESSIE_NO_TSAN inline bool exchange_code(Word *word, Word expected, Word desired) noexcept {
  return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
/// Not atomic: for code that nobody can be running.
NESSIE_NO_TSAN inline void write_code(std::byte *to, const void *from, std::size_t size_bytes) noexcept {
  auto *target = reinterpret_cast<volatile std::byte *>(to);
  for (std::size_t i = 0; i < size_bytes; ++i) target[i] = static_cast<const std::byte *>(from)[i];
}

/// One place in the code, and the word there with and without the probe.
struct Site {
  Word *word = nullptr;
  Word original = 0, probed = 0;

  Word now() const { return load_code(word); }
};

}  // namespace nnti::probe
