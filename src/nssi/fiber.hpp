// SPDX-License-Identifier: BSD-3-Clause
// A user-level thread with a stack of its own, used for one piece of work after the other.
#pragma once

#include <boost/context/fiber.hpp>

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
class Fiber {
 public:
  explicit Fiber(std::size_t stack_bytes);
  /// Only while it has no work.
  ~Fiber();
  Fiber(const Fiber &) = delete;

  void start(std::function<void()> work) { work_ = std::move(work); }
  bool has_work() const { return work_ != nullptr; }
  /// From outside the fiber.
  void resume();
  /// From inside the fiber: returns when it is resumed.
  void yield();

 private:
  struct ExceptionState {
    void *caught = nullptr;
    unsigned uncaught = 0;
  };
  boost::context::fiber main(boost::context::fiber &&outside);
  void arrived(void *fake_stack);
  void swap_exception_state();

  GuardedStack stack_;
  boost::context::fiber inside_, outside_;
  std::function<void()> work_;
  bool quit_ = false;
  ExceptionState exception_state_;
  void *fake_stack_ = nullptr;              // AddressSanitizer's
  const void *outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
  void *race_fiber_ = nullptr, *race_outside_ = nullptr;   // ThreadSanitizer's
};

}  // namespace nssi
