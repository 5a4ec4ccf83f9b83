// SPDX-License-Identifier: BSD-3-Clause
// Where programs that know nothing of staging ask for a file to be whole (board.h): a socket, and a thread of its own
// that hands their wishes to the server. Whoever can reach the socket may ask; all that it does is to have a file
// written a little sooner.
#pragma once

#include <services/staging/protocol.hpp>

#include <nessie/result.hpp>
#include <nnti/fd.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace staging {

class Door {
 public:
  /// Called on the door's thread: has what was put to the file before (zeros: to all) written, and calls `done`, on
  /// whatever thread, when that is over.
  using Settle = std::function<void(const FileIdentity &identity, std::function<void()> done)>;
  /// Called on the door's thread each second while somebody waits: calls `alive` if the server still works.
  using Pulse = std::function<void(std::function<void()> alive)>;

  /// kIo, with the cause.
  static nessie::Result<std::unique_ptr<Door>> open(Settle settle, Pulse pulse);
  /// Visitors learn that nobody is there any more.
  ~Door();
  Door(const Door &) = delete;

  /// Of the abstract socket.
  const std::string &name() const { return name_; }

 private:
  struct Visitor {
    nnti::Fd socket;
    std::uint64_t id = 0;
    bool waits = false;  ///< has said what for
    std::chrono::steady_clock::time_point since;
  };
  /// What other threads tell the door's; lives as long as one of them may.
  struct Mail {
    std::mutex mutex;
    std::vector<std::uint64_t> settled;
    std::atomic<bool> alive{false};
    nnti::Fd bell;
    void ring() const;
  };
  Door(nnti::Fd listener, std::string name, Settle settle, Pulse pulse);
  void serve();
  bool wait_for_something(std::vector<bool> &readable, bool &visitor_came);
  void let_in();
  bool hear(Visitor &visitor);
  void answer_settled();
  void keep_up_hope();

  const nnti::Fd listener_;
  const std::string name_;
  const Settle settle_;
  const Pulse pulse_;
  const std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  std::atomic<bool> closing_{false};
  std::vector<Visitor> visitors_;
  std::uint64_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace staging
