// SPDX-License-Identifier: BSD-3-Clause
#if defined(__x86_64__)
#include "nnti/registration_cache/code_probe_arch.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace nnti::probe {

namespace {

constinit Handler handler_of_all = nullptr;

/// As nnti_probe_entry leaves them on the stack.
struct Registers {
  std::uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, rbp;
};

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) extern const char nnti_probe_entry[];

/// True: the call has been made, and rax holds its result.
__attribute__((visibility("hidden"), used)) NESSIE_NO_TSAN bool nnti_probe_handle(Registers *saved) {
  SystemCall call{
      static_cast<int>(saved->rax), {saved->rdi, saved->rsi, saved->rdx, saved->r10, saved->r8, saved->r9}, 0};
  if (!__atomic_load_n(&handler_of_all, __ATOMIC_RELAXED)(call)) return false;
  saved->rax = static_cast<std::uint64_t>(call.result);
  return true;
}
}

// The C part may use the vector registers: libc keeps nothing in them where it makes a system call. The zero flag tells
// the thunk whether the call is still to be made; what follows the test leaves the flags alone.
asm(R"(
  .text
  .hidden nnti_probe_entry
  .globl nnti_probe_entry
  .type nnti_probe_entry, @function
nnti_probe_entry:
  push %rbp
  mov %rsp, %rbp
  push %rax
  push %rcx
  push %rdx
  push %rsi
  push %rdi
  push %r8
  push %r9
  push %r10
  push %r11
  mov %rsp, %rdi
  and $-16, %rsp
  cld
  call nnti_probe_handle
  lea -72(%rbp), %rsp
  test %al, %al
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rdi
  pop %rsi
  pop %rdx
  pop %rcx
  pop %rax
  pop %rbp
  ret
  .size nnti_probe_entry, . - nnti_probe_entry
)");

NESSIE_NO_TSAN long raw_call(const SystemCall &call) noexcept {
  long result = call.number;
  register std::uintptr_t fourth asm("r10") = call.arguments[3];
  register std::uintptr_t fifth asm("r8") = call.arguments[4];
  register std::uintptr_t sixth asm("r9") = call.arguments[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(call.arguments[0]), "S"(call.arguments[1]), "d"(call.arguments[2]), "r"(fourth), "r"(fifth),
                 "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

namespace arch {

namespace {

constexpr std::size_t kJumpBytes = 5;

std::byte byte(unsigned value) { return static_cast<std::byte>(value); }

/// `jmp rel32`, as it stands at `from`.
std::array<std::byte, kJumpBytes> near_jump(const std::byte *from, const std::byte *to) {
  const auto distance = static_cast<std::int32_t>(to - (from + kJumpBytes));
  std::array<std::byte, kJumpBytes> code{byte(0xe9)};
  std::memcpy(&code[1], &distance, sizeof distance);
  return code;
}

/// How many bytes from `at` on are one of the no-operations by which compilers and assemblers fill up; 0: it is none.
std::size_t filler_bytes(std::span<const std::byte> at) {
  std::size_t i = 0;
  while (i < at.size() && (at[i] == byte(0x66) || at[i] == byte(0x2e))) ++i;
  if (i < at.size() && (at[i] == byte(0x90) || (at[i] == byte(0xcc) && i == 0))) return i + 1;
  if (i + 2 >= at.size() || at[i] != byte(0x0f) || at[i + 1] != byte(0x1f)) return 0;
  const auto operand = std::to_integer<unsigned>(at[i + 2]);
  const unsigned mode = operand >> 6, base = operand & 7;
  if (mode == 3 || (mode == 0 && base == 5)) return 0;
  return i + 3 + (base == 4 ? 1 : 0) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/// The unused bytes behind a function: up to the next multiple of 16, where the next one starts; without the landings
/// that are there already.
std::span<std::byte> filler_behind(std::byte *end) {
  const auto room = [&] { return (16 - reinterpret_cast<std::uintptr_t>(end) % 16) % 16; };
  while (room() >= kJumpBytes && *end == byte(0xe9)) end += kJumpBytes;
  const std::span all(end, room());
  for (auto rest = all; !rest.empty();) {
    const auto size = filler_bytes(rest);
    if (size == 0 || size > rest.size()) return {};
    rest = rest.subspan(size);
  }
  return all;
}

/// The aligned word in which `code` lies if it is put at `at`; null if it lies across two.
Site word_with(std::byte *at, std::span<const std::byte> code) {
  const auto offset = reinterpret_cast<std::uintptr_t>(at) % sizeof(Word);
  if (offset + code.size() > sizeof(Word)) return {};
  Site site{reinterpret_cast<Word *>(at - offset), 0, 0};
  site.original = site.probed = site.now();
  std::memcpy(reinterpret_cast<std::byte *>(&site.probed) + offset, code.data(), code.size());
  return site;
}

class Assembler {
 public:
  explicit Assembler(std::byte *at) : at_(at) {}
  const std::byte *at() const { return at_; }
  void emit(std::initializer_list<unsigned> code) {
    for (auto value : code) *at_++ = byte(value);
  }
  void emit(std::span<const std::byte> code) { at_ = std::copy(code.begin(), code.end(), at_); }
  void emit_distance_to(const void *target) {
    const auto distance = static_cast<std::int32_t>(static_cast<const std::byte *>(target) - (at_ + 4));
    std::memcpy(at_, &distance, sizeof distance);
    at_ += sizeof distance;
  }

 private:
  std::byte *at_;
};

}  // namespace

Spot find_call(const FunctionCode &code, long number) {
  std::array<std::byte, 7> wanted{byte(0xb8), {}, {}, {}, {}, byte(0x0f), byte(0x05)};  // mov $number, %eax; syscall
  const auto value = static_cast<std::int32_t>(number);
  std::memcpy(&wanted[1], &value, sizeof value);
  constexpr std::array any = {0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05};  // mov 8(%rsp), %r9; syscall
  if (number < 0) std::transform(any.begin(), any.end(), wanted.begin(), byte);
  auto *found = std::search(code.begin, code.end(), wanted.begin(), wanted.end());
  return {found == code.end() ? nullptr : found, Kind::kCall};
}

Spot find_return(const FunctionCode &code) {
  const std::array marker = {byte(0xf3), byte(0x0f), byte(0x1e), byte(0xfa)};  // endbr64
  auto *at = code.begin;
  if (code.size_bytes > marker.size() && std::equal(marker.begin(), marker.end(), at)) at += marker.size();
  const bool returns = at + 1 == code.end() && *at == byte(0xc3);
  return {returns ? at : nullptr, Kind::kReturn};
}

void write_thunk(std::byte *thunk, const Spot &spot, const void *const *entry) {
  Assembler out(thunk);
  if (spot.kind == Kind::kCall)
    out.emit(std::span<const std::byte>(spot.at, kJumpBytes));
  else
    out.emit({0xb8, 0xff, 0xff, 0xff, 0xff});  // mov $-1, %eax
  out.emit({0x48, 0x8d, 0x64, 0x24, 0x80});    // lea -128(%rsp), %rsp: the red zone
  out.emit({0xff, 0x15});                      // call *entry
  out.emit_distance_to(entry);
  out.emit({0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0});  // lea 128(%rsp), %rsp
  if (spot.kind == Kind::kReturn) return out.emit({0xc3});
  out.emit({0x74, kJumpBytes});  // jz: the call is still to be made
  out.emit(near_jump(out.at(), spot.at + kJumpBytes + 2));
  out.emit(near_jump(out.at(), spot.at + kJumpBytes));
}

Change plan_change(const FunctionCode &code, const Spot &spot, const std::byte *thunk) {
  // A return is one byte; what follows it must be filler.
  const auto filler = filler_behind(code.end());
  if (spot.kind == Kind::kCall || filler.size() >= kJumpBytes - 1) {
    const auto site = word_with(spot.at, near_jump(spot.at, thunk));
    if (site.word != nullptr) return {site, nullptr, {}, 0};
  }
  const std::size_t used = spot.kind == Kind::kReturn ? 1 : 0;  // the short jump's second byte
  if (filler.size() < used + kJumpBytes) return {};
  auto *landing = filler.data() + used;
  const auto distance = landing - (spot.at + 2);
  if (distance > 127) return {};
  const auto site = word_with(spot.at, std::array{byte(0xeb), byte(static_cast<unsigned>(distance))});
  Change change{site, landing, {}, kJumpBytes};
  std::ranges::copy(near_jump(landing, thunk), change.landing_code.begin());
  return change;
}

const void *entry_function() { return nnti_probe_entry; }
void set_handler(Handler handler) { __atomic_store_n(&handler_of_all, handler, __ATOMIC_RELAXED); }

}  // namespace arch
}  // namespace nnti::probe
#endif
