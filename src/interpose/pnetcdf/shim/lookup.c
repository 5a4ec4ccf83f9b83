/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. Interpreters and plug-in systems look functions up in libpnetcdf itself (Julia's ccall, Python's
 * ctypes), and preloaded tools look up who comes behind them. So this library stands in front of dlsym as well: whoever
 * would get a function of the native libpnetcdf gets ours. Everything else goes on to the C library's dlsym by a jump,
 * with the caller's return address in place, because what RTLD_NEXT means depends on who asks; that takes a few
 * instructions of assembly. Where those are not written, dlsym is left alone, and such programs are not staged
 * (shim.c).
 *
 * Some programs ask whether PnetCDF is there, and do without. Where it is not, our functions are not either: dlsym is
 * asked for a name that nobody has, because what it leaves for dlerror() nobody else can; dlerror() takes the mark off.
 */
#define _GNU_SOURCE
#include "behind.h"
#include "library.h"
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

typedef void *(*Lookup)(void *, const char *);

/* Read by the assembly. */
__attribute__((visibility("hidden"))) _Atomic(Lookup) nessie_dlsym_of_libc;

/* Finds it. Called by the assembly, too. */
__attribute__((visibility("hidden"))) Lookup nessie_find_dlsym(void) {
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  void *symbol = NULL;
  for (size_t i = 0; symbol == NULL && i < sizeof versions / sizeof *versions; ++i)
    symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  Lookup found = NULL;
  memcpy(&found, &symbol, sizeof found);
  atomic_store(&nessie_dlsym_of_libc, found);
  return found;
}

void *nessie_real_dlsym(void *handle, const char *name) {
  Lookup lookup = atomic_load(&nessie_dlsym_of_libc);
  if (lookup == NULL) lookup = nessie_find_dlsym();
  return lookup == NULL ? NULL : lookup(handle, name);
}

#if defined(__x86_64__) || defined(__aarch64__)

static bool is_program(void *handle) {
  struct link_map *map = NULL;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && *map->l_name == '\0';
}

static const void *look_up(void *handle, const char *name, const void *caller) {
  return handle == RTLD_NEXT ? nessie_next_function(caller, name) : nessie_real_dlsym(handle, name);
}

/* Whether the function would be found only because we were preloaded. */
static bool is_absent(void *handle, int index, const char *name, const void *caller) {
  if (handle != RTLD_DEFAULT && handle != RTLD_NEXT && !is_program(handle)) return false;
  return look_up(handle, name, caller) == nessie_shim_entry(index) && nessie_real_dlsym(RTLD_NEXT, name) == NULL;
}

/* What dlsym(handle, name) is to give; NULL: what the C library's gives, asked for this name. */
typedef struct {
  void *function;
  const char *name;
} Answer;

/* Called at `caller`, for a name that begins with ncmpi. */
__attribute__((visibility("hidden"))) Answer nessie_lookup(void *handle, const char *name, const void *caller) {
  const int index = nessie_shim_index(name);
  const Answer usual = {NULL, name};
  if (index < 0) return usual;
  if (!nessie_has_native())
    return is_absent(handle, index, name, caller) ? (Answer){NULL, nessie_shim_marked_name(index)} : usual;
  if (handle == RTLD_DEFAULT) return usual;
  const void *function = look_up(handle, name, caller);
  if (nessie_is_native(function)) {
    (void)dlerror(); /* what was found leaves no error behind */
    return (Answer){nessie_shim_entry(index), name};
  }
  if (handle != RTLD_NEXT && nessie_is_of_other(function)) {
    nessie_part_other(function);
    nessie_shim_note_other();
  }
  return usual;
}

REAL(dlerror)
NESSIE_EXPORT char *dlerror(void) {
  char *text = BEHIND(dlerror)();
  char *mark = text == NULL ? NULL : strstr(text, NESSIE_MARK "ncmpi_");
  if (mark != NULL) memmove(mark, mark + strlen(NESSIE_MARK), strlen(mark));
  return text;
}

#endif

/* A call that keeps the arguments. */
#if defined(__x86_64__)
#define NESSIE_CALL(function)                     \
  "  push %rdi\n  .cfi_adjust_cfa_offset 8\n"     \
  "  push %rsi\n  .cfi_adjust_cfa_offset 8\n"     \
  "  sub $8, %rsp\n  .cfi_adjust_cfa_offset 8\n"  \
  "  call " function                              \
  "\n"                                            \
  "  add $8, %rsp\n  .cfi_adjust_cfa_offset -8\n" \
  "  pop %rsi\n  .cfi_adjust_cfa_offset -8\n"     \
  "  pop %rdi\n  .cfi_adjust_cfa_offset -8\n"
__asm__(
    ".text\n.globl dlsym\n.type dlsym, @function\n"
    "dlsym:\n  .cfi_startproc\n"
    "  test %rsi, %rsi\n  jz 1f\n"
    "  cmpb $'n', (%rsi)\n  jne 1f\n"
    "  cmpb $'c', 1(%rsi)\n  jne 1f\n"
    "  cmpb $'m', 2(%rsi)\n  jne 1f\n"
    "  cmpb $'p', 3(%rsi)\n  jne 1f\n"
    "  cmpb $'i', 4(%rsi)\n  jne 1f\n"
    "  mov (%rsp), %rdx\n" NESSIE_CALL("nessie_lookup")
    "  test %rax, %rax\n  jnz 3f\n"
    "  mov %rdx, %rsi\n"
    "1:\n"
    "  mov nessie_dlsym_of_libc(%rip), %rax\n"
    "  test %rax, %rax\n  jnz 2f\n" NESSIE_CALL("nessie_find_dlsym")
    "  test %rax, %rax\n  jz 3f\n"
    "2:\n"
    "  jmp *%rax\n"
    "3:\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
#define NESSIE_CALL(function)                                  \
  "  stp x29, x30, [sp, #-32]!\n  .cfi_adjust_cfa_offset 32\n" \
  "  .cfi_rel_offset x29, 0\n  .cfi_rel_offset x30, 8\n"       \
  "  stp x0, x1, [sp, #16]\n  mov x29, sp\n"                   \
  "  bl " function                                             \
  "\n"                                                         \
  "  mov x9, x0\n  mov x10, x1\n"                              \
  "  ldp x0, x1, [sp, #16]\n  ldp x29, x30, [sp], #32\n"       \
  "  .cfi_adjust_cfa_offset -32\n  .cfi_restore x29\n  .cfi_restore x30\n"
__asm__(
    ".text\n.globl dlsym\n.type dlsym, %function\n"
    "dlsym:\n  .cfi_startproc\n"
    "  cbz x1, 1f\n"
    "  ldrb w9, [x1]\n  cmp w9, #'n'\n  b.ne 1f\n"
    "  ldrb w9, [x1, #1]\n  cmp w9, #'c'\n  b.ne 1f\n"
    "  ldrb w9, [x1, #2]\n  cmp w9, #'m'\n  b.ne 1f\n"
    "  ldrb w9, [x1, #3]\n  cmp w9, #'p'\n  b.ne 1f\n"
    "  ldrb w9, [x1, #4]\n  cmp w9, #'i'\n  b.ne 1f\n"
    "  mov x2, x30\n" NESSIE_CALL("nessie_lookup")
    "  cbnz x9, 3f\n  mov x1, x10\n"
    "1:\n"
    "  adrp x9, nessie_dlsym_of_libc\n  ldr x9, [x9, #:lo12:nessie_dlsym_of_libc]\n"
    "  cbnz x9, 2f\n" NESSIE_CALL("nessie_find_dlsym")
    "  cbz x9, 3f\n"
    "2:\n"
    "  br x9\n"
    "3:\n"
    "  mov x0, x9\n  ret\n"
    "  .cfi_endproc\n"
    ".size dlsym, . - dlsym\n");
#endif
