// SPDX-License-Identifier: BSD-3-Clause
// A call in progress, as Python holds it: waited for by a thread, or by an event loop.
#pragma once

#include "buffer.hpp"
#include "host.hpp"
#include "mailbox.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace nessie_python {

/// What is called, and how; as Runtime.call() has it.
struct Order {
  nssi::Service service;
  nssi::OpCode op = 0;
  std::optional<double> timeout;
  bool idempotent = false, one_way = false;
  int when_busy = 0;  ///< nssi.WhenBusy

  nssi::CallOptions options(const Buffer *data) const;
};

class PendingCall : public std::enable_shared_from_this<PendingCall> {
 public:
  /// `data` is kept alive by whoever keeps this.
  static std::shared_ptr<PendingCall> start(Host &host, const Order &order, const py::object &args, Buffer *data);
  /// Sends and waits: the result's bytes.
  static py::object call(Host &host, const Order &order, const py::object &args, Buffer *data);
  /// Drops the call; may block, as the header of nssi::Call says.
  ~PendingCall();

  // --- with the GIL ---------------------------------------------------------------------------------------------------
  bool test();
  /// Returns when it is over, whatever the outcome. TimedOut: it is not.
  void wait(std::optional<double> timeout);
  /// Of a call that is over: the result's bytes, or raises its error.
  py::object result();
  /// Ends it with kCancelled. Waits until it is over, unless an event loop has it.
  void cancel();
  /// Puts `token` into `mailbox` when it is over; at once if it is.
  void tell_also(std::shared_ptr<Mailbox> mailbox, std::uint64_t token);
  /// The place of one that is over. As nssi::wait_any.
  static std::size_t wait_any(const std::vector<std::shared_ptr<PendingCall>> &calls, std::optional<double> timeout);
  bool is_done() const { return completion_->is_done(); }
  double seconds_left() const;

  // --- for an event loop: somebody else drives --------------------------------------------------------------------------
  /// InvalidArgument: a thread waits for it.
  void tell(std::shared_ptr<Mailbox> mailbox, std::uint64_t token);
  /// Its deadline has passed: ends it. Does not wait.
  void expire();
  /// Drops it. Does not wait: it is over when the server can no longer touch its data.
  void abandon();

 private:
  PendingCall(Host &host, Buffer *data) : host_(host), data_(data) {}
  void wait_some(Deadline deadline);
  enum class End { kExpire, kCancel, kDrop };
  void end(End how);
  static void wait_some_for_any(const std::vector<std::shared_ptr<PendingCall>> &calls, Deadline deadline);
  void give_back();

  Host &host_;
  Buffer *data_;  ///< null: none, or given back
  nssi::Call call_;
  Deadline deadline_ = Deadline::never();
  std::shared_ptr<Completion> completion_ = std::make_shared<Completion>();
  std::atomic<bool> in_use_{false};  ///< a thread waits for `call_`, or an event loop has it for good
  std::atomic<bool> is_of_loop_{false}, cancelling_{false};
  std::atomic<bool> ending_{false}, dropped_{false};
};

void bind_call(py::module_ &module);

}  // namespace nessie_python
