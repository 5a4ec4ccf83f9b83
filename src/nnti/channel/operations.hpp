// SPDX-License-Identifier: BSD-3-Clause
// A session's gets and puts. One that a fault ends is begun again, on the next connection if need be, until it
// succeeds, is refused, or has failed for too long.
//
// Design notes. Beginning again is safe because a put writes the same bytes to the same place, and because nothing of a
// first attempt lands later: a connection's transfers have ended when its transport says that it is lost, and
// Connection::abort() ends them where we give it up ourselves.
#pragma once

#include "nnti/channel/settings.hpp"

#include <list>

namespace nnti::channel {

class Operations {
 public:
  struct Request {
    bool is_get = false;
    RemoteBuffer remote;
    std::uint64_t offset = 0;
    std::byte *local = nullptr;
    std::size_t size_bytes = 0;
    Completion *completion = nullptr;
  };

  /// `patience`: how long one may fail, again and again, before its error is told. `lossy`: the transport's operations
  /// fail for a while.
  Operations(const nessie::TimeSource &time, Duration patience, bool lossy)
      : time_(time), patience_(patience), lossy_(lossy) {}

  /// Begins on `link`; null: when there is one again.
  void start(const Request &request, Connection *link);
  /// Begins what waits again, if its time has come; `link()` is asked before each.
  template <class Link> void restart(Link link);
  /// Completes what waits with `error`; what is under way completes with it whatever its connection says.
  void end(const Error &error);
  bool any_under_way() const { return !under_way_.empty(); }
  bool any_waiting() const { return !waiting_.empty(); }
  /// When restart() has something to do, if there is a connection; kNever: nothing waits.
  Time restart_time() const { return waiting_.empty() ? kNever : retry_; }
  /// There is a connection again: what its predecessor's end, or absence, kept from succeeding waits no more.
  void on_new_link() {
    waiting_.splice(waiting_.end(), stranded_);
    retry_ = Time::min();
  }

 private:
  struct Operation final : Completion {
    explicit Operation(Operations &its_owner) : owner(its_owner) {}
    void on_complete(Status status) override { owner.ended(*this, std::move(status)); }
    Operations &owner;
    Request request;
    Time failing_since = kNever;
    unsigned attempts = 0;
    std::list<Operation>::iterator place;
  };
  using List = std::list<Operation>;

  /// Begins the first of `from`.
  void begin(List &from, Connection &link);
  void ended(Operation &operation, Status status);
  bool may_go_better(const Operation &operation, const Status &status) const;

  nessie::TimeSource time_;
  Duration patience_;
  bool lossy_;
  std::optional<Error> end_;
  Time retry_ = Time::min();
  List under_way_;
  List waiting_;   ///< for a moment
  List stranded_;  ///< until there is another connection
  List unused_;
};

template <class Link> void Operations::restart(Link link) {
  for (auto left = waiting_.size(); left != 0 && !waiting_.empty(); --left) {
    Connection *on = link();
    if (on == nullptr) return;
    begin(waiting_, *on);
  }
}

}  // namespace nnti::channel
