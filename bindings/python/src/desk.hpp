// SPDX-License-Identifier: BSD-3-Clause
// A request between its handler in Python, which may be on any thread, and the thread that may touch it.
#pragma once

#include "errors.hpp"
#include "origin.hpp"

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace nessie_python {

class Desk {
 public:
  using Work = std::function<Status(nssi::Request &)>;
  /// kHere: the handler runs where the request arrived. kFiber: on a worker; a fiber does for it what it may not.
  enum class Place { kHere, kFiber };

  Desk(nssi::Request &request, Place place);

  // --- the handler's side, with the GIL ---------------------------------------------------------------------------------
  std::uint64_t caller() const { return caller_; }
  py::bytes caller_identity() const { return {reinterpret_cast<const char *>(identity_.data()), identity_.size()}; }
  int role() const { return static_cast<int>(role_); }
  nssi::OpCode op() const { return op_; }
  std::uint64_t data_bytes() const { return data_bytes_; }
  std::optional<double> seconds_left() const;
  /// Copied at the first time: the caller of long ones may change them at any moment.
  py::object args();
  void get_data(const py::object &destination, std::uint64_t offset);
  void put_data(const py::object &source, std::uint64_t offset);
  /// At most once; kExists after that.
  void reply(const py::object &result);
  void reply_error(const Error &error);
  bool is_answered() const { return answered_; }
  /// Whether somebody still waits for the result, as nssi::Request::check says.
  void check_caller();
  /// The same. If not, the caller hears why, should it come back.
  bool is_wanted();
  /// False: in a child of the process that the request came to.
  bool is_here() const { return origin_.is_here(); }
  /// The handler has ended: nothing can be asked of the request any more.
  void leave();

  // --- the fiber's side ---------------------------------------------------------------------------------------------------
  /// Does what the handler asks for until it leaves, or the runtime ends; answers for the one that is not begun.
  void attend(nssi::Runtime &runtime);

 private:
  Status carry_out(const Work &work);
  Status carry_out_here(const Work &work);
  Status carry_out_on_fiber(const Work &work);
  /// What a handler's thread waits for.
  struct Command {
    const Work &work;
    Status outcome = {};
    bool is_done = false;
  };
  Command *next_command(nssi::Runtime &runtime);
  void finish(Command &command, Status status);

  const Origin origin_;
  const Place place_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::uint64_t caller_, data_bytes_;
  const nssi::OpCode op_;
  const nssi::Role role_;
  std::array<std::byte, 16> identity_;
  const Deadline deadline_;
  py::object args_;        ///< null until they were asked for
  bool answered_ = false;  ///< with the GIL

  std::mutex mutex_;
  std::condition_variable done_;
  nssi::Request *request_;  ///< null: it is over
  Command *command_ = nullptr;
  bool left_ = false;
  Status unwanted_;               ///< why it was not begun
  nssi::Event *event_ = nullptr;  ///< what the fiber waits for
};

void bind_desk(py::module_ &module);

}  // namespace nessie_python
