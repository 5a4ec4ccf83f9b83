// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/fiber.hpp>

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#define NSSI_LOOKS_FOR_LEAKS 1
#elif defined(__has_feature)  // clang, which builds the fuzzers
#if __has_feature(address_sanitizer)
#define NSSI_LOOKS_FOR_LEAKS 1
#endif
#endif
#if defined(NSSI_LOOKS_FOR_LEAKS)
#include <sanitizer/lsan_interface.h>
#endif

namespace nssi {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackFactor = 4;  // instrumented frames are larger
#else
constexpr std::size_t kStackFactor = 1;
#endif

std::size_t page_bytes() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

namespace context = boost::context::detail;

/// Goes to another context; returns the one that comes back here.
context::fcontext_t hop(context::fcontext_t to, void *argument, [[maybe_unused]] void *race_to) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(race_to, 0);
#endif
  return context::jump_fcontext(to, argument).fctx;
}

}  // namespace

GuardedStack::GuardedStack(std::size_t size_bytes) {
  const auto page = page_bytes();
  mapping_bytes_ = (size_bytes * kStackFactor + page - 1) / page * page + page;
  void *memory = ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte *>(memory);
  if (::mprotect(mapping_, page, PROT_NONE) != 0) {
    ::munmap(mapping_, mapping_bytes_);
    throw std::bad_alloc();
  }
#if defined(NSSI_LOOKS_FOR_LEAKS)  // what only a suspended fiber knows is not lost
  __lsan_register_root_region(bottom(), static_cast<std::size_t>(top() - bottom()));
#endif
}

GuardedStack::~GuardedStack() {
#if defined(NSSI_LOOKS_FOR_LEAKS)
  __lsan_unregister_root_region(bottom(), static_cast<std::size_t>(top() - bottom()));
#endif
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom(), static_cast<std::size_t>(top() - bottom()));  // frames that never returned
#endif
  ::munmap(mapping_, mapping_bytes_);
}

std::byte *GuardedStack::bottom() const { return mapping_ + page_bytes(); }

Fiber::Fiber(std::size_t stack_bytes) : stack_(stack_bytes) {
  inside_ = context::make_fcontext(stack_.top(), static_cast<std::size_t>(stack_.top() - stack_.bottom()), entry);
#if defined(__SANITIZE_THREAD__)
  race_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  quit_ = true;
  resume();
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(race_fiber_);
#endif
}

void Fiber::entry(context::transfer_t from) {
  auto *self = static_cast<Fiber *>(from.data);
  self->outside_ = from.fctx;
  self->arrived(nullptr);
  self->work_for_ever();
}

void Fiber::work_for_ever() {
  for (;;) {
    if (quit_) leave(true);
    work_();
    work_ = nullptr;
    yield();
  }
}

void Fiber::resume() {
  void *globals = abi::__cxa_get_globals();  // this thread's, also when the fiber comes back
  swap_exception_state(globals);
#if defined(__SANITIZE_ADDRESS__)
  void *fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_.bottom(),
                                 static_cast<std::size_t>(stack_.top() - stack_.bottom()));
#endif
#if defined(__SANITIZE_THREAD__)
  race_outside_ = __tsan_get_current_fiber();
#endif
  inside_ = hop(inside_, this, race_fiber_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  swap_exception_state(globals);
}

void Fiber::yield() { leave(false); }

void Fiber::leave([[maybe_unused]] bool for_good) {
  void *fake_stack = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack, outside_bottom_, outside_size_);
#endif
  outside_ = hop(outside_, nullptr, race_outside_);
  arrived(fake_stack);
}

void Fiber::arrived([[maybe_unused]] void *fake_stack) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, &outside_bottom_, &outside_size_);
#endif
}

/// The C++ run time keeps the exceptions being handled per thread; a fiber may be suspended in a catch block.
void Fiber::swap_exception_state(void *globals) {
  ExceptionState mine;
  std::memcpy(&mine, globals, sizeof mine);
  std::memcpy(globals, &exception_state_, sizeof mine);
  exception_state_ = mine;
}

}  // namespace nssi
