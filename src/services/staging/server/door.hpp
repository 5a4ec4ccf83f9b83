// SPDX-License-Identifier: BSD-3-Clause
// Where programs that know nothing of staging ask for a file to be whole (board.h): a socket, and a thread of its own
// that hands their wishes to the server. Whoever can reach the socket may ask; all that it does is to have a file
// written a little sooner: those who wait for the same file wait for one and the same drain, and users other than the
// server's own, and root, get half of the places together, and a quarter each.
#pragma once

#include <staging.hpp>

#include <base/clock.hpp>
#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <sys/types.h>

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
  /// whatever thread, when that is over. Not called for a file again before that.
  using Settle = std::function<void(const FileIdentity &identity, std::function<void()> done)>;
  /// Called on the door's thread four times a second while anybody waits: has the server show that it works, and calls
  /// `alive`, on whatever thread, when it has. Not called again before that.
  using Pulse = std::function<void(std::function<void()> alive)>;

  /// kIo, with the cause.
  static nessie::Result<std::unique_ptr<Door>> open(Settle settle, Pulse pulse, nessie::TimeSource time = {});
  /// Visitors learn that nobody is there any more.
  ~Door();
  Door(const Door &) = delete;

  /// Of the abstract socket.
  const std::string &name() const { return name_; }

 private:
  struct Visitor {
    nessie::Fd socket;
    uid_t user = 0;
    std::uint64_t wish = 0;  ///< 0: has not said what for
    nessie::Clock::time_point since;
  };
  /// What several visitors may wait for. Whoever comes when it has begun waits for the next one of the same file.
  struct Wish {
    std::uint64_t number = 0;
    FileIdentity file;
    bool begun = false;
  };
  /// What other threads tell the door's; lives as long as one of them may.
  struct Mail {
    std::mutex mutex;
    std::vector<std::uint64_t> settled;
    std::atomic<bool> alive{true};
    nessie::Fd bell;
    void ring() const;
  };
  Door(nessie::Fd listener, std::string name, Settle settle, Pulse pulse, nessie::TimeSource time);
  void serve();
  bool anybody_waits() const { return !visitors_.empty() || cannot_accept_; }
  int time_to_pulse_ms() const;
  bool wait_for_something(std::vector<bool> &readable);
  void let_in();
  nessie::Fd accept_one();
  bool is_welcome(uid_t user) const;
  bool hear(Visitor &visitor);
  std::uint64_t join(const FileIdentity &file);
  void begin(Wish &wish);
  void answer_settled();
  void answer(std::uint64_t number);
  void pulse();

  const nessie::Fd listener_;
  const std::string name_;
  const Settle settle_;
  const Pulse pulse_;
  const nessie::TimeSource time_;
  const std::size_t most_visitors_;
  const std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  std::atomic<bool> closing_{false};
  std::vector<Visitor> visitors_;
  std::vector<Wish> wishes_;
  std::uint64_t next_wish_ = 1;
  nessie::Fd spare_;            ///< given up for a visitor where there are no others
  bool cannot_accept_ = false;  ///< for want of descriptors, until the next pulse
  nessie::Clock::time_point next_pulse_;
  std::thread thread_;
};

}  // namespace staging
