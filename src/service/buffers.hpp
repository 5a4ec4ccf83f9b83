// SPDX-License-Identifier: BSD-3-Clause
// The buffers through which data pass on their way from and to callers: a few, lent again and again, so that a server's
// memory grows neither with the data nor with the callers. One whose caller is stuck, as it was stopped, does not
// count: another one is made in its place, and that caller gets no more meanwhile.
#pragma once

#include <base/budget.hpp>
#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nessie::service {

struct BuffersOptions {
  std::string name;  ///< of its account
  std::size_t size_bytes = std::size_t{1} << 20;
  std::size_t most = 4;
  /// Whether a caller's data have been on their way for so long that others shall not wait for it. Null: none ever is.
  std::function<bool(nssi::PeerId)> is_stuck = {};
};

/// Handlers of the thread that drives, and of pools. Not to outlive the runtime.
class Buffers {
 public:
  Buffers(nssi::Runtime &runtime, Budget &budget, BuffersOptions options);
  ~Buffers();
  Buffers(const Buffers &) = delete;

  class Lease;
  /// Suspends the fiber until one is free; callers in order of arrival. With a `request`, errors as
  /// nssi::Request::check(), as soon as nobody waits for its result. kCancelled: the runtime is being destroyed.
  Result<Lease> take(nssi::PeerId caller, const nssi::Request *request = nullptr);
  std::size_t size_bytes() const { return options_.size_bytes; }

 private:
  struct Buffer;
  struct Waiter;
  bool is_stuck(nssi::PeerId caller) const;
  bool has_room() const;
  Waiter *next() const;
  std::unique_ptr<Buffer> make();
  std::unique_ptr<Buffer> lend_to(nssi::PeerId caller);
  bool serve(Waiter &waiter);
  void give_back(std::unique_ptr<Buffer> buffer);
  void drop_free();

  nssi::Runtime &runtime_;
  std::mutex mutex_;
  const BuffersOptions options_;
  std::vector<Buffer *> lent_;
  std::vector<std::unique_ptr<Buffer>> free_;
  std::deque<Waiter *> waiting_;
  Budget::Account account_;
};

struct Buffers::Buffer {
  struct Free {
    void operator()(std::byte *memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory;
  nssi::PeerId caller;
};

/// A buffer, until this is dropped.
class Buffers::Lease {
 public:
  Lease(Lease &&) = default;
  ~Lease() {
    if (buffer_) buffers_->give_back(std::move(buffer_));
  }
  /// Page-aligned; what it holds is unspecified.
  std::byte *data() const { return buffer_->memory.get(); }

 private:
  friend class Buffers;
  Lease(Buffers &buffers, std::unique_ptr<Buffer> buffer) : buffers_(&buffers), buffer_(std::move(buffer)) {}
  Buffers *buffers_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace nessie::service
