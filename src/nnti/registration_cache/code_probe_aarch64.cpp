// SPDX-License-Identifier: BSD-3-Clause
#if defined(__aarch64__)
#include "nnti/registration_cache/code_probe_arch.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace nnti::probe {

namespace {

constinit Handler handler_of_all = nullptr;

/// As nnti_probe_entry leaves them on the stack.
struct Registers {
  std::uint64_t x[16], x18, x30, flags, unused;
};

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) extern const char nnti_probe_entry[];

/// True: the call has been made, and x0 holds its result.
__attribute__((visibility("hidden"), used)) NESSIE_NO_TSAN bool nnti_probe_handle(Registers *saved) {
  SystemCall call{static_cast<int>(saved->x[8]), {}, 0};
  for (int i = 0; i < 6; ++i) call.arguments[i] = saved->x[i];
  if (!__atomic_load_n(&handler_of_all, __ATOMIC_RELAXED)(call)) return false;
  saved->x[0] = static_cast<std::uint64_t>(call.result);
  return true;
}
}

// A system call keeps every register but x0, the flags too. The C part may use the vector registers: libc keeps nothing
// in them where it makes a system call. x17 tells the thunk whether the call has been made; the thunk has saved x16,
// x17, x29 and x30.
asm(R"(
  .text
  .hidden nnti_probe_entry
  .globl nnti_probe_entry
  .type nnti_probe_entry, %function
nnti_probe_entry:
  stp x0, x1, [sp, #-160]!
  stp x2, x3, [sp, #16]
  stp x4, x5, [sp, #32]
  stp x6, x7, [sp, #48]
  stp x8, x9, [sp, #64]
  stp x10, x11, [sp, #80]
  stp x12, x13, [sp, #96]
  stp x14, x15, [sp, #112]
  stp x18, x30, [sp, #128]
  mrs x9, nzcv
  str x9, [sp, #144]
  mov x0, sp
  bl nnti_probe_handle
  and x17, x0, #0xff
  ldr x9, [sp, #144]
  msr nzcv, x9
  ldp x18, x30, [sp, #128]
  ldp x14, x15, [sp, #112]
  ldp x12, x13, [sp, #96]
  ldp x10, x11, [sp, #80]
  ldp x8, x9, [sp, #64]
  ldp x6, x7, [sp, #48]
  ldp x4, x5, [sp, #32]
  ldp x2, x3, [sp, #16]
  ldp x0, x1, [sp], #160
  ret
  .size nnti_probe_entry, . - nnti_probe_entry
)");

NESSIE_NO_TSAN long raw_call(const SystemCall &call) noexcept {
  register std::uintptr_t number asm("x8") = static_cast<std::uintptr_t>(call.number);
  register std::uintptr_t first asm("x0") = call.arguments[0];
  register std::uintptr_t second asm("x1") = call.arguments[1];
  register std::uintptr_t third asm("x2") = call.arguments[2];
  register std::uintptr_t fourth asm("x3") = call.arguments[3];
  register std::uintptr_t fifth asm("x4") = call.arguments[4];
  register std::uintptr_t sixth asm("x5") = call.arguments[5];
  asm volatile("svc #0"
               : "+r"(first)
               : "r"(number), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "memory");
  return static_cast<long>(first);
}

namespace arch {

namespace {

constexpr Word kCallKernel = 0xd4000001;  // svc #0
constexpr Word kReturnCode = 0xd65f03c0;  // ret

Word word_at(const std::byte *at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// `b`, as it stands at `from`.
Word branch(const std::byte *from, const std::byte *to) {
  return 0x14000000 | (static_cast<Word>((to - from) / 4) & 0x3ffffff);
}

}  // namespace

Spot find_call(const FunctionCode &code, long) {
  for (auto *at = code.begin; at < code.end(); at += sizeof(Word))
    if (word_at(at) == kCallKernel) return {at, Kind::kCall};
  return {};
}

Spot find_return(const FunctionCode &code) {
  constexpr Word kLandingPad = 0xd503245f, kNothing = 0xd503201f;  // bti c; nop
  auto *at = code.begin;
  while (at < code.end() && (word_at(at) == kLandingPad || word_at(at) == kNothing)) at += sizeof(Word);
  const bool returns = at < code.end() && word_at(at) == kReturnCode;
  return {returns ? at : nullptr, Kind::kReturn};
}

void write_thunk(std::byte *thunk, const Spot &spot, const void *const *entry) {
  auto *at = thunk;
  const auto emit = [&at](Word word) {
    std::memcpy(at, &word, sizeof word);
    at += sizeof word;
  };
  const auto emit_restore = [&] {
    emit(0xa8c147f0);  // ldp x16, x17, [sp], #16
    emit(0xa8c17bfd);  // ldp x29, x30, [sp], #16
  };
  if (spot.kind == Kind::kReturn) emit(0x92800008);  // mov x8, #-1
  emit(0xa9bf7bfd);                                  // stp x29, x30, [sp, #-16]!
  emit(0xa9bf47f0);                                  // stp x16, x17, [sp, #-16]!
  const auto distance = reinterpret_cast<const std::byte *>(entry) - at;
  emit(0x58000010 | (static_cast<Word>(distance / 4) & 0x7ffff) << 5);  // ldr x16, entry
  emit(0xd63f0200);                                                     // blr x16
  if (spot.kind == Kind::kReturn) return emit_restore(), emit(kReturnCode);
  emit(0xb4000091);  // cbz x17, four instructions on: the call is still to be made
  emit_restore();
  emit(branch(at, spot.at + sizeof(Word)));
  emit_restore();
  emit(kCallKernel);
  emit(branch(at, spot.at + sizeof(Word)));
}

Change plan_change(const FunctionCode &, const Spot &spot, const std::byte *thunk) {
  Site site{reinterpret_cast<Word *>(spot.at), word_at(spot.at), branch(spot.at, thunk)};
  return {site, nullptr, {}, 0};
}

const void *entry_function() { return nnti_probe_entry; }
void set_handler(Handler handler) { __atomic_store_n(&handler_of_all, handler, __ATOMIC_RELAXED); }

}  // namespace arch
}  // namespace nnti::probe
#endif
