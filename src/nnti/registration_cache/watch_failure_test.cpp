// SPDX-License-Identifier: BSD-3-Clause
// Processes in which the memory cannot be watched, or not any more. Each starts anew, so that nothing is watched yet.
#include "nnti/registration_cache/code_probe.hpp"
#include "nnti/registration_cache/memory_events.hpp"
#include "nnti/registration_cache/registrar_test.hpp"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

namespace nnti {
namespace {

using test::CountingRegistrar;
using test::kAccess;
using test::Pages;

constexpr int kRight = 0, kStale = 3, kUnexpected = 4, kNotPossible = 5;

/// A cache with memory to register.
struct Cached {
  CountingRegistrar registrar;
  RegistrationCache cache{registrar};
  const Pages memory{4};

  /// Registers all of the memory, or finds it registered.
  bool acquire() { return cache.acquire(memory.all(), kAccess).ok(); }
  bool acquire_and_keep() { return acquire() && cache.keeps_registrations(); }
  /// Registers, replaces the memory, registers: both times it works, and nothing is kept.
  bool works_without_keeping() {
    for (int i = 0; i < 2; ++i) {
      if (!acquire()) return false;
      memory.replace(0, 4);
    }
    return !cache.keeps_registrations() && registrar.made == 2 && registrar.alive == 0;
  }
};

/// From now on, nothing can be made writable and executable at once, as some hardened systems have it.
bool forbid_writable_code() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_READ | PROT_WRITE | PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// What other software puts in place of munmap: it asks the kernel itself.
int foreign_munmap(void *memory, std::size_t size_bytes) {
  const auto result = probe::raw_call(
      {SYS_munmap, {reinterpret_cast<std::uintptr_t>(memory), static_cast<std::uintptr_t>(size_bytes)}, 0});
  return result == 0 ? 0 : -1;
}
/// The same, by way of libc's syscall(), as Open MPI, UCX and libfabric do it.
int foreign_munmap_by_syscall(void *memory, std::size_t size_bytes) {
  return static_cast<int>(::syscall(SYS_munmap, memory, size_bytes));
}

void make_writable(const probe::FunctionCode &code) {
  const auto pages = pages_of(reinterpret_cast<std::uintptr_t>(code.begin), code.size_bytes);
  ::mprotect(reinterpret_cast<void *>(pages.begin), pages.size_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC);
}

/// The same of brk, which is so short that such a patch leaves nothing of it. What libc notes is left alone.
int foreign_brk(void *end) {
  return probe::raw_call({SYS_brk, {reinterpret_cast<std::uintptr_t>(end)}, 0}) < 0 ? -1 : 0;
}
int foreign_brk_by_syscall(void *end) { return ::syscall(SYS_brk, end) < 0 ? -1 : 0; }

/// Writes a jump to `replacement` over the entry of a function of libc, as patchers do. Returns what was there.
template <class Function> std::vector<std::byte> patch(const char *function, Function *replacement) {
  const auto code = probe::libc_function(function);
#if defined(__x86_64__)
  unsigned char jump[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};  // mov $address, %r11; jmp *%r11
  std::memcpy(jump + 2, &replacement, sizeof replacement);
#else
  unsigned char jump[16] = {0x51, 0, 0, 0x58, 0x20, 2, 0x1f, 0xd6};  // ldr x17, .+8; br x17
  std::memcpy(jump + 8, &replacement, sizeof replacement);
#endif
  std::vector<std::byte> before(code.begin, code.begin + sizeof jump);
  make_writable(code);
  probe::write_code(code.begin, jump, sizeof jump);
  __builtin___clear_cache(reinterpret_cast<char *>(code.begin), reinterpret_cast<char *>(code.end()));
  return before;
}

std::vector<std::byte> patch_munmap(int (*replacement)(void *, std::size_t)) { return patch("munmap", replacement); }

void restore_munmap(const std::vector<std::byte> &before) {
  const auto code = probe::libc_function("munmap");
  make_writable(code);
  probe::write_code(code.begin, before.data(), before.size());
  __builtin___clear_cache(reinterpret_cast<char *>(code.begin), reinterpret_cast<char *>(code.end()));
}

class WatchFailure : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// `process` runs in a process of its own, where it comes out right, and says `words`.
template <class Process> void expect_right(Process process, const char *words = "") {
  const auto run = [&] {
    const int code = process();
    std::fflush(nullptr);
    ::_exit(code);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kRight), words);
}

TEST_F(WatchFailure, OnSystemsThatForbidWritableCodeKeepsNothingAndSaysSo) {
  expect_right(
      [] {
        if (!forbid_writable_code()) return kNotPossible;
        return Cached().works_without_keeping() ? kRight : kUnexpected;
      },
      "forbids to make code writable");
}

TEST_F(WatchFailure, WhereMunmapIsNotSeenKeepsNothingAndSaysSo) {
  expect_right(
      [] {
        patch_munmap(&foreign_munmap);
        return Cached().works_without_keeping() ? kRight : kUnexpected;
      },
      "calls of munmap in this process are not");
}

int run_where_the_break_is_taken(int (*replacement)(void *), bool keeps) {
  patch("brk", replacement);
  Cached cached;
  return cached.acquire() && cached.cache.keeps_registrations() == keeps ? kRight : kUnexpected;
}

TEST_F(WatchFailure, WhereBrkIsNotSeenKeepsNothingAndSaysSo) {
  expect_right([] { return run_where_the_break_is_taken(&foreign_brk, false); },
               "calls of brk in this process are not");
}

TEST_F(WatchFailure, DoesNotHappenWhereBrkGoesThroughLibcsSyscall) {
  expect_right([] { return run_where_the_break_is_taken(&foreign_brk_by_syscall, true); });
}

TEST_F(WatchFailure, DoesNotHappenWithAPatcherThatGoesThroughLibcsSyscall) {
  expect_right([] {
    patch_munmap(&foreign_munmap_by_syscall);
    Cached cached;
    if (!cached.acquire_and_keep()) return kUnexpected;
    cached.memory.replace(0, 4);
    if (!cached.acquire()) return kUnexpected;
    return cached.registrar.made == 2 ? kRight : kStale;
  });
}

/// Somebody patches munmap while registrations are kept; the first change that is missed happens before anything can be
/// noticed.
int run_and_be_patched_later(int (*replacement)(void *, std::size_t), bool keeps_on) {
  Cached cached;
  if (!cached.acquire_and_keep()) return kUnexpected;
  patch_munmap(replacement);
  replacement(cached.memory.at(1), page_bytes());
  if (!cached.cache.acquire(cached.memory.pages(0, 1), kAccess).ok()) return kUnexpected;
  if (cached.registrar.made != 2) return kStale;
  return cached.cache.keeps_registrations() == keeps_on ? kRight : kUnexpected;
}

TEST_F(WatchFailure, ThatBeginsLaterIsNoticedAndNothingKeptAnyMore) {
  expect_right([] { return run_and_be_patched_later(&foreign_munmap, false); },
               "calls of munmap in this process are not seen");
}

TEST_F(WatchFailure, ThatIsNoneForgetsEverythingOnceAndGoesOn) {
  expect_right([] { return run_and_be_patched_later(&foreign_munmap_by_syscall, true); });
}

/// Somebody was there before us, and takes his patch back: no probe is left at munmap.
TEST_F(WatchFailure, DoesNotHappenWhenAnotherPatchIsTakenBack) {
  expect_right([] {
    const auto before = patch_munmap(&foreign_munmap_by_syscall);
    Cached cached;
    if (!cached.acquire_and_keep()) return kUnexpected;
    restore_munmap(before);
    for (int expected = 2; expected < 4; ++expected) {
      if (!cached.acquire_and_keep()) return kUnexpected;
      if (cached.registrar.made != expected) return kStale;
      cached.memory.replace(0, 4);
    }
    return kRight;
  });
}

TEST_F(WatchFailure, IsOutOfTheQuestionWhereNothingNeedsToBeWatchedAndNoCodeIsChanged) {
  expect_right([] {
    const auto code = probe::libc_function("munmap");
    const std::vector<std::byte> before(code.begin, code.end());
    CountingRegistrar following;
    following.follows = true;
    RegistrationCache idle(following), follower(following), keeper(following, {.regions = 0});
    const Pages memory(4);
    if (!follower.acquire(memory.all(), kAccess).ok() || !keeper.acquire(memory.all(), kAccess).ok())
      return kUnexpected;
    return std::equal(before.begin(), before.end(), code.begin) ? kRight : kUnexpected;
  });
}

}  // namespace
}  // namespace nnti
