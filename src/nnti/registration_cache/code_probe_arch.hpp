// SPDX-License-Identifier: BSD-3-Clause
// What code_probe.cpp needs to know of a processor. One of code_probe_x86_64.cpp and code_probe_aarch64.cpp defines it;
// on others kSupported is false.
#pragma once

#include "nnti/registration_cache/code.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace nnti::probe::arch {

#if defined(__x86_64__)
inline constexpr bool kSupported = true;
inline constexpr std::uintptr_t kReachBytes = 0x7f000000;  ///< jmp rel32: 2 GiB, less libc itself
#elif defined(__aarch64__)
inline constexpr bool kSupported = true;
inline constexpr std::uintptr_t kReachBytes = 0x7000000;  ///< b: 128 MiB, less libc itself
#else
inline constexpr bool kSupported = false;
inline constexpr std::uintptr_t kReachBytes = 0;
#endif

inline constexpr std::size_t kThunkBytes = 96;

/// Where a jump may replace an instruction, and what that was.
enum class Kind { kCall, kReturn };
struct Spot {
  std::byte *at = nullptr;  ///< null: there is no such place
  Kind kind = Kind::kCall;
};

/// The first system call in `code` that has no probe: the last instruction before it (x86-64), or the call itself
/// (aarch64, where it tells its number only when it is made).
Spot find_call(const FunctionCode &code, long number);
/// The return of a function that does nothing else.
Spot find_return(const FunctionCode &code);

/// Writes the thunk of `spot`; `entry` holds the address of the function that saves the registers.
void write_thunk(std::byte *thunk, const Spot &spot, const void *const *entry);

/// How the code has to change for `spot` to lead to `thunk`: one aligned word, and before that, where the jump is too
/// short to reach it, the landing (at most 8 bytes) behind the function.
struct Change {
  Site site;  ///< word is null: the code leaves no room for a safe change
  std::byte *landing = nullptr;
  std::array<std::byte, 8> landing_code{};
  std::size_t landing_bytes = 0;
};
Change plan_change(const FunctionCode &code, const Spot &spot, const std::byte *thunk);

/// What thunks call: saves the registers and asks the handler.
const void *entry_function();
void set_handler(Handler handler);

}  // namespace nnti::probe::arch
