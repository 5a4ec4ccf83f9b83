// SPDX-License-Identifier: BSD-3-Clause
// A user-level thread with a stack of its own, used for one piece of work after the other.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <functional>

namespace nssi {

/// Memory for a stack below which a page faults instead of being overwritten.
class GuardedStack {
 public:
  /// Throws std::bad_alloc if the system has no more memory or mappings.
  explicit GuardedStack(std::size_t size_bytes);
  ~GuardedStack();
  GuardedStack(const GuardedStack &) = delete;
  std::byte *bottom() const;
  std::byte *top() const { return mapping_ + mapping_bytes_; }

 private:
  std::byte *mapping_;
  std::size_t mapping_bytes_;
};

/// resume() runs the fiber's work on its stack until it ends or calls yield(); the two are a fiber's only switches.
/// The switches are made known to AddressSanitizer and ThreadSanitizer, and each fiber has its own exception state.
///
/// Made from Boost.Context's bare contexts: boost::context::fiber ends by unwinding its stack with an exception, which
/// a handler's `catch (...)` would swallow. Our fibers never end; they are idle, and then their stack is unmapped.
class Fiber {
 public:
  explicit Fiber(std::size_t stack_bytes);
  /// Only while it has no work.
  ~Fiber();
  Fiber(const Fiber &) = delete;

  void start(std::function<void()> &&work) { work_ = std::move(work); }
  bool has_work() const { return work_ != nullptr; }
  /// From outside the fiber.
  void resume();
  /// From inside the fiber: returns when it is resumed.
  void yield();

 private:
  using Context = boost::context::detail::fcontext_t;
  struct ExceptionState {
    void *caught = nullptr;
    unsigned uncaught = 0;
  };
  static void entry(boost::context::detail::transfer_t from);
  void work_for_ever();
  void leave(bool for_good);
  void arrived(void *fake_stack);
  void swap_exception_state(void *globals);

  GuardedStack stack_;
  Context inside_, outside_ = nullptr;
  std::function<void()> work_;
  bool quit_ = false;
  ExceptionState exception_state_;
  const void *outside_bottom_ = nullptr;  // AddressSanitizer's
  std::size_t outside_size_ = 0;
  void *race_fiber_ = nullptr, *race_outside_ = nullptr;  // ThreadSanitizer's
};

}  // namespace nssi
