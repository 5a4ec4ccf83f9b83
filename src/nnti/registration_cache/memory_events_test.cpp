// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/memory_events.hpp"

#include <base/clock.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace nnti {
namespace {

/// Counts the changes of one range.
class Recorder final : public MemoryListener {
 public:
  explicit Recorder(AddressRange range) : watched_(range) {
    EXPECT_TRUE(memory_events::watch().ok());
    EXPECT_TRUE(memory_events::subscribe(*this).ok());
  }
  ~Recorder() { memory_events::unsubscribe(*this); }
  void memory_changing(AddressRange range) noexcept override {
    if (!range.overlaps(watched_)) return;
    last_ = range;
    unsigned char resident;
    if (changes_++ == 0)
      was_mapped_ = ::mincore(reinterpret_cast<void *>(watched_.begin), page_bytes(), &resident) == 0;
  }
  int changes() const { return changes_; }
  AddressRange last() const { return last_; }
  bool was_mapped() const { return was_mapped_; }

 private:
  AddressRange watched_, last_;
  std::atomic<int> changes_{0};
  bool was_mapped_ = false;
};

AddressRange range_of(const void *memory, std::size_t size_bytes) {
  return pages_of(reinterpret_cast<std::uintptr_t>(memory), size_bytes);
}

class MemoryEvents : public testing::Test {
 protected:
  static constexpr std::size_t kPages = 8;
  void SetUp() override {
    ASSERT_TRUE(memory_events::watch().ok()) << memory_events::watch().error().message;
    memory_ = map(nullptr, 0);
  }
  void TearDown() override { ::munmap(memory_, size()); }
  static std::size_t size() { return kPages * page_bytes(); }
  static std::byte *map(void *at, int flags) {
    void *memory = ::mmap(at, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<std::byte *>(memory);
  }
  std::byte *memory_ = nullptr;
};

TEST_F(MemoryEvents, TellOfMunmapBeforeTheMappingGoes) {
  Recorder recorder(range_of(memory_, size()));
  ASSERT_EQ(::munmap(memory_, size()), 0);
  EXPECT_EQ(recorder.changes(), 1);
  EXPECT_TRUE(recorder.was_mapped());
  EXPECT_EQ(recorder.last(), range_of(memory_, size()));
  unsigned char resident;
  EXPECT_NE(::mincore(memory_, page_bytes(), &resident), 0);
  EXPECT_EQ(map(memory_, MAP_FIXED), memory_);
}

TEST_F(MemoryEvents, TellOfMappingsThatReplaceOthersOnly) {
  Recorder recorder(range_of(memory_, size()));
  EXPECT_EQ(map(memory_, MAP_FIXED), memory_);
  EXPECT_EQ(recorder.changes(), 1);
  auto *elsewhere = map(memory_, 0);
  EXPECT_EQ(recorder.changes(), 1);
  ::munmap(elsewhere, size());
  EXPECT_EQ(recorder.changes(), 1);
}

TEST_F(MemoryEvents, TellOfWhatMremapTakesAway) {
  Recorder source(range_of(memory_, size()));
  auto *shrunk = static_cast<std::byte *>(::mremap(memory_, size(), size() / 2, 0));
  ASSERT_EQ(shrunk, memory_);
  EXPECT_EQ(source.changes(), 1);
  EXPECT_EQ(source.last(), range_of(memory_ + size() / 2, size() / 2));
  auto *target = map(nullptr, 0);
  Recorder replaced(range_of(target, size() / 2));
  ASSERT_EQ(::mremap(memory_, size() / 2, size() / 2, MREMAP_MAYMOVE | MREMAP_FIXED, target), target);
  EXPECT_EQ(source.changes(), 2);
  EXPECT_EQ(replaced.changes(), 1);
  ::munmap(target, size());
  EXPECT_EQ(map(memory_, MAP_FIXED), memory_);
}

TEST_F(MemoryEvents, TellOfAdviceThatEmptiesPagesOnly) {
  Recorder recorder(range_of(memory_, size()));
  ASSERT_EQ(::madvise(memory_, size(), MADV_WILLNEED), 0);
  ASSERT_EQ(::madvise(memory_, size(), MADV_HUGEPAGE), 0);
  EXPECT_EQ(recorder.changes(), 0);
  for (int advice : {MADV_DONTNEED, MADV_FREE}) {
    const int before = recorder.changes();
    ASSERT_EQ(::madvise(memory_, size(), advice), 0);
    EXPECT_EQ(recorder.changes(), before + 1) << "advice " << advice;
  }
}

TEST_F(MemoryEvents, LeaveResultsAndErrnoAsTheyAre) {
  errno = 0;
  EXPECT_EQ(::munmap(memory_ + 1, size()), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::madvise(memory_, size(), -1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::mremap(memory_, size(), 2 * size(), 64), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::mmap(memory_, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::shmdt(memory_), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::syscall(SYS_gettid), ::gettid());
}

TEST_F(MemoryEvents, TellOfSystemCallsMadeByLibcsSyscall) {
  Recorder recorder(range_of(memory_, size()));
  ASSERT_EQ(::syscall(SYS_munmap, memory_, size()), 0);
  EXPECT_EQ(recorder.changes(), 1);
  // All six arguments arrive.
  const auto again =
      ::syscall(SYS_mmap, memory_, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(reinterpret_cast<std::byte *>(again), memory_);
  EXPECT_EQ(recorder.changes(), 2);
}

/// malloc() always maps so large a block by itself; the size from which it does so grows up to 32 MiB as blocks are
/// freed.
constexpr std::size_t kMappedBlock = 64 << 20;

TEST_F(MemoryEvents, TellOfUnmappingWithinFree) {
  constexpr std::size_t kBytes = kMappedBlock;
  void *volatile block = std::malloc(kBytes);
  ASSERT_NE(block, nullptr);  // NOLINT(clang-analyzer-unix.Malloc): a volatile pointer, freed below
  Recorder recorder(range_of(static_cast<std::byte *>(block) + kBytes / 2, page_bytes()));
  std::free(block);
  EXPECT_GE(recorder.changes(), 1);
}

TEST_F(MemoryEvents, TellOfMovingWithinRealloc) {
  constexpr std::size_t kBytes = kMappedBlock;
  void *volatile block = std::malloc(kBytes);
  ASSERT_NE(block, nullptr);  // NOLINT(clang-analyzer-unix.Malloc): likewise
  Recorder recorder(range_of(static_cast<std::byte *>(block) + kBytes / 2, page_bytes()));
  block = std::realloc(block, 4 * kBytes);
  EXPECT_GE(recorder.changes(), 1);
  std::free(block);
}

// The sanitizers bring an allocator of their own, which does not use the break.
TEST_F(MemoryEvents, TellOfTheBreakMovingBack) {
  const auto size_bytes = static_cast<intptr_t>(4 * page_bytes());
  void *before = ::sbrk(size_bytes);
  ASSERT_NE(before, reinterpret_cast<void *>(-1));
  Recorder recorder(range_of(static_cast<std::byte *>(before) + page_bytes(), 2 * page_bytes()));
  ASSERT_NE(::sbrk(-size_bytes), reinterpret_cast<void *>(-1));
  EXPECT_EQ(recorder.changes(), 1);
  EXPECT_TRUE(recorder.was_mapped());
  EXPECT_EQ(::sbrk(0), before);
}

TEST_F(MemoryEvents, TellOfSystemVSegments) {
  const int id = ::shmget(IPC_PRIVATE, size(), IPC_CREAT | 0600);
  if (id < 0) GTEST_SKIP() << "no System V shared memory here";
  Recorder recorder(range_of(memory_, size()));
  ASSERT_EQ(::shmat(id, memory_, SHM_REMAP), memory_);
  ::shmctl(id, IPC_RMID, nullptr);
  EXPECT_EQ(recorder.changes(), 1);
  ASSERT_EQ(::shmdt(memory_), 0);
  EXPECT_EQ(recorder.changes(), 2);
  EXPECT_EQ(map(memory_, MAP_FIXED), memory_);
}

TEST_F(MemoryEvents, TellOfLibrariesBeingUnloaded) {
  void *library = ::dlopen(NNTI_TEST_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  void *block = ::dlsym(library, "nnti_test_module_block");
  ASSERT_NE(block, nullptr);
  Recorder recorder(range_of(block, 1));
  ASSERT_EQ(::dlclose(library), 0);
  unsigned char resident;
  if (::mincore(reinterpret_cast<void *>(range_of(block, 1).begin), page_bytes(), &resident) == 0)
    GTEST_SKIP() << "this program keeps its libraries (cmake/keep_libraries.c)";
  EXPECT_GE(recorder.changes(), 1);
  EXPECT_TRUE(recorder.was_mapped());
}

// One thread empties memory, which takes the kernel a while; the other one looks.
TEST_F(MemoryEvents, SayWhatIsChangingUntilItHasChanged) {
  constexpr std::size_t kBytes = 16 << 20;
  auto *large =
      static_cast<std::byte *>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto range = range_of(large, kBytes);
  const auto watchdog = nessie::Deadline::in(std::chrono::seconds(60));
  std::atomic<bool> seen{false};
  std::thread looker([&] {
    while (!seen && !watchdog.passed()) seen = memory_events::changing({range.begin, range.begin + 1});
  });
  while (!seen && !watchdog.passed()) {
    std::memset(large, 1, kBytes);
    ::madvise(large, kBytes, MADV_DONTNEED);
  }
  looker.join();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(memory_events::changing(range));
  ::munmap(large, kBytes);
}

TEST_F(MemoryEvents, RefuseMoreListenersThanThereIsRoomFor) {
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (int i = 0; i < memory_events::kMaxListeners; ++i)
    recorders.push_back(std::make_unique<Recorder>(AddressRange{}));
  class Silent final : public MemoryListener {
    void memory_changing(AddressRange) noexcept override {}
  } late;
  EXPECT_EQ(memory_events::subscribe(late).code(), nessie::Code::kBusy);
  recorders.pop_back();
  EXPECT_TRUE(memory_events::subscribe(late).ok());
  memory_events::unsubscribe(late);
}

// Threads that run libc's code while it is being changed are hard to catch at it; this runs them when they can be.
TEST_F(MemoryEvents, AreSeenByAllThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> seen{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        auto *mine = map(nullptr, 0);
        Recorder recorder(range_of(mine, size()));
        ::munmap(mine, size());
        seen += recorder.changes() >= 1 ? 1 : 0;
      }
    });
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(seen, 800);
}

}  // namespace
}  // namespace nnti
