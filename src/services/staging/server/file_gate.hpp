// SPDX-License-Identifier: BSD-3-Clause
// Who may work on a file.
#pragma once

#include <service/wait_queue.hpp>

namespace staging {

using nessie::service::WaitQueue;

/// Shared by transfers, taken alone by what changes a file as a whole. Who wants it alone goes before later transfers.
class FileGate {
 public:
  explicit FileGate(nssi::Runtime &runtime) : changed_(runtime) {}
  bool is_wanted_alone() const { return alone_wanted_ > 0; }

  class Shared {
   public:
    explicit Shared(FileGate &gate) : gate_(gate) {
      while (gate_.alone_wanted_ > 0) (void)gate_.changed_.wait();
      ++gate_.shared_;
    }
    ~Shared() { gate_.leave(); }
    Shared(const Shared &) = delete;

   private:
    FileGate &gate_;
  };

  /// As Shared, but goes before who wants the file alone: those who share it already may wait for this.
  class Beside {
   public:
    explicit Beside(FileGate &gate) : gate_(gate) {
      while (gate_.alone_) (void)gate_.changed_.wait();
      ++gate_.shared_;
    }
    ~Beside() { gate_.leave(); }
    Beside(const Beside &) = delete;

   private:
    FileGate &gate_;
  };

  class Alone {
   public:
    explicit Alone(FileGate &gate) : gate_(gate) {
      ++gate_.alone_wanted_;
      while (gate_.shared_ > 0 || gate_.alone_) (void)gate_.changed_.wait();
      gate_.alone_ = true;
    }
    ~Alone() {
      --gate_.alone_wanted_;
      gate_.alone_ = false;
      gate_.changed_.notify_all();
    }
    Alone(const Alone &) = delete;

   private:
    FileGate &gate_;
  };

 private:
  void leave() {
    if (--shared_ == 0) changed_.notify_all();
  }
  WaitQueue changed_;
  int shared_ = 0, alone_wanted_ = 0;
  bool alone_ = false;
};

}  // namespace staging
