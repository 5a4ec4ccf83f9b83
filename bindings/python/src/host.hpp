// SPDX-License-Identifier: BSD-3-Clause
// A runtime as Python holds it: closed at a moment of Python's choosing, while other threads may be inside.
//
// Design notes. Python's handlers run on threads of Python's: short ones on the thread that drives, all others on
// workers (workers.hpp), never on a fiber, where two of them would share one thread state of the interpreter. Whatever
// may wait lets go of the interpreter (the GIL) first. Long waits come up for air every kSlice: to run Python's signal
// handlers, where it is the main thread that waits, and to see whether the runtime was closed.
#pragma once

#include "errors.hpp"
#include "origin.hpp"
#include "workers.hpp"

#include <nssi/discovery.hpp>
#include <nssi/nssi.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nessie_python {

inline constexpr std::chrono::milliseconds kSlice{100};

struct HostOptions {
  std::vector<std::string> transports;
  bool listen = true;
  std::optional<std::string> credential;  ///< 64 hexadecimal digits
  std::map<std::string, std::string> settings;
  std::size_t max_handlers = 0;
};

class Host {
 public:
  static std::shared_ptr<Host> open(HostOptions options);
  ~Host();
  Host(const Host &) = delete;

  /// Without the GIL, or briefly.
  nssi::Runtime &runtime() { return *runtime_; }
  std::shared_ptr<Workers> workers() { return workers_; }
  const std::string &url() const { return url_; }
  const Origin &origin() const { return origin_; }
  Deadline default_deadline() const { return Deadline::in(timeout_); }

  // --- with the GIL ---------------------------------------------------------------------------------------------------
  std::uint64_t connect(const std::string &url, double timeout);
  std::uint64_t connect_to(const std::string &what, double timeout);
  std::vector<std::string> find(const std::string &what, double timeout);
  /// Until close().
  void announce(const std::string &where, const std::string &kind, const std::map<std::string, std::string> &attributes,
                double timeout);
  void disconnect(std::uint64_t peer);
  /// `serve(request, handler)` carries one request out.
  void add_operation(nssi::Operation operation, py::object handler, py::object serve);
  /// Drives until stop(). An exception that ends the interpreter's work (KeyboardInterrupt), from a signal or out of a
  /// short handler, ends it too.
  void run();
  /// Drives until close(), whenever nobody is in run().
  void pump();
  void stop();
  /// As nssi::Runtime::stop_when_done; run() returns then, too.
  void stop_when_done(std::optional<double> timeout);
  /// Ends what is in progress, with kCancelled. Returns when no thread is inside any more. Nothing, in a child of the
  /// process that opened it.
  void close();
  bool is_closed() const { return closed_.load(); }

  /// Without the GIL, and where it was opened: does `work` while the runtime cannot end, or after it has ended.
  template <class Work> void use_or_outlive(Work work);

 private:
  friend class Visit;
  explicit Host(std::unique_ptr<nssi::Runtime> runtime);
  std::vector<nssi::Place> wait_for(const std::string &what, Deadline deadline);
  void serve(nssi::Request &request, py::object *handler, py::object *serve);
  void serve_here(nssi::Request &request, py::object *handler, py::object *serve);
  void drive_for_a_slice(bool is_user);
  void tick();
  void throw_interruption();

  const Origin origin_;
  std::unique_ptr<nssi::Runtime> runtime_;
  std::mutex announcing_;
  std::vector<nssi::Announcement> announcements_;
  std::string url_;
  std::chrono::milliseconds timeout_{30000};
  std::shared_ptr<Workers> workers_ = std::make_shared<Workers>();
  std::vector<std::unique_ptr<py::object>> kept_;  ///< handlers
  std::timed_mutex driving_;
  std::atomic<bool> stop_{false}, closed_{false}, user_drives_{false};
  std::atomic<bool> finishing_{false}, ticked_{false};  ///< ticked_: tick() had run() return
  std::atomic<nessie::Clock::time_point> finish_by_{nessie::Clock::time_point::max()};  ///< while finishing_
  std::atomic<int> visitors_{0};
  bool ticks_ = false;
  std::mutex ending_;                                    ///< held while the runtime ends
  std::unique_ptr<py::error_already_set> interruption_;  ///< with the GIL
};

/// A thread inside the runtime, which cannot end meanwhile. Raises kCancelled if it has, kInvalidArgument in a child of
/// the process that opened it.
class Visit {
 public:
  explicit Visit(Host &host);
  ~Visit();
  Visit(const Visit &) = delete;
  /// Of the calling thread, to any runtime.
  static int &depth();

 private:
  Host &host_;
};

template <class Work> void Host::use_or_outlive(Work work) {
  std::optional<Visit> visit;
  try {
    visit.emplace(*this);
  } catch (const Raised &) { std::lock_guard lock(ending_); }
  work();
}

}  // namespace nessie_python
