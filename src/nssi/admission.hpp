// SPDX-License-Identifier: BSD-3-Clause
// How much of a service is in progress, for all its callers and for each of them. A request for which there is no room
// is turned away, and remembered by its number: callers are invited to send again, one request each in turn, when there
// is room. Used by the driver.
//
// Design notes. What waits, waits at its caller: a service that is flooded keeps sixteen bytes for each request. While
// a caller has requests that were turned away, those that follow are turned away, too, so that they begin in their
// order; while others wait for room, nobody passes them. An invitation holds room free; a caller who does not come for
// a while loses it, and is not invited again before it is heard of.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <deque>
#include <memory>
#include <optional>

namespace nssi {

class Admission;
class Session;

/// A caller whose requests were turned away.
struct Waiting {
  struct Entry {
    std::uint64_t id, bytes;
    PeerId peer;  ///< the connection on which it came
  };
  Session *session = nullptr;
  std::deque<Entry> requests;  ///< in their order
  std::size_t invited = 0;     ///< of them, from the front; there is room for these
  bool queued = false;         ///< among those who are invited when there is room
  bool is_silent = false;      ///< was invited, and did not come
};

/// What a caller has in progress at one service.
struct Share {
  std::uint64_t requests = 0, bytes = 0;
  std::unique_ptr<Waiting> waiting;
};

/// Room that is taken until this is dropped. Not to outlive the admission and the session.
class Charge {
 public:
  Charge() = default;
  Charge(Admission &admission, Session &session, std::uint64_t requests, std::uint64_t bytes)
      : admission_(&admission), session_(&session), requests_(requests), bytes_(bytes) {}
  Charge(Charge &&other) noexcept { swap(other); }
  Charge &operator=(Charge &&other) noexcept {
    swap(other);
    other.release();
    return *this;
  }
  ~Charge() { release(); }
  void release();

 private:
  void swap(Charge &other) {
    std::swap(admission_, other.admission_);
    std::swap(session_, other.session_);
    std::swap(requests_, other.requests_);
    std::swap(bytes_, other.bytes_);
  }
  Admission *admission_ = nullptr;
  Session *session_ = nullptr;
  std::uint64_t requests_ = 0, bytes_ = 0;
};

class Admission {
 public:
  /// `index` is the service's among its callers' shares.
  Admission(const Service &service, std::size_t index, const Limits &limits)
      : service_(service), index_(index), limits_(limits) {}
  Admission(const Admission &) = delete;

  /// Peer apart, whose requests these are.
  const Service &service() const { return service_; }
  const Limits &limits() const { return limits_; }
  void set_limits(const Limits &limits) { limits_ = limits; }

  /// Nothing: there is no room, or others were there before.
  std::optional<Charge> admit(Session &session, std::uint64_t id, std::uint64_t bytes);
  /// What there must be room for, because it exists already.
  Charge charge(Session &session, std::uint64_t bytes);
  /// Notes a request that was not admitted, which its caller will send again when it is invited.
  void turn_away(Session &session, PeerId from, std::uint64_t id, std::uint64_t bytes);
  /// The caller does not want that request any more.
  void withdraw(Session &session, std::uint64_t id);
  /// That connection is gone: what was turned away there will be sent anew.
  void forget(Session &session, PeerId peer);
  /// Where the next invitation goes; there is room for its request from now on. Nothing: there is none.
  std::optional<PeerId> invite();
  /// Who was turned away is invited, whether or not there is room.
  void invite_all() { limits_ = {0, 0, 0, 0}; }
  /// Takes back the invitations that were not heeded.
  void expire();
  nessie::Deadline next_expiry() const;
  /// A guess of when there is room for one more.
  std::chrono::milliseconds hint();

  bool may_invite() const { return !queue_.empty(); }
  bool is_idle() const { return all_.requests == invited_ && all_.bytes == invited_bytes_; }
  std::uint64_t requests() const { return all_.requests - invited_; }
  std::size_t callers_waiting() const { return waiting_; }

 private:
  friend class Charge;
  struct Invitation {
    nessie::Clock::time_point until;
    Session *session;
    std::uint64_t id;
  };
  Share &share_of(Session &session) const;
  bool fits(const Share &share, std::uint64_t bytes) const;
  bool fits_caller(const Share &share, std::uint64_t bytes) const;
  void add(Share &share, std::uint64_t requests, std::uint64_t bytes);
  void release(Session &session, std::uint64_t requests, std::uint64_t bytes);
  bool take_invitation(Session &session, std::uint64_t id);
  void end_invitation(const Session &session, std::uint64_t id);
  void uninvite(Share &share, std::size_t place);
  void remove(Share &share, std::size_t place);
  void enqueue(Waiting &waiting);
  void drop(Share &share);

  const Service service_;
  const std::size_t index_;
  Limits limits_;
  Share all_;                                      ///< of all callers, with what is kept free for invited ones
  std::uint64_t invited_ = 0, invited_bytes_ = 0;  ///< of that
  std::deque<Waiting *> queue_;
  std::deque<Invitation> invitations_;  ///< one for each request that is invited
  std::size_t waiting_ = 0;
  std::uint64_t finished_ = 0, finished_before_ = 0;  ///< for the hint
  nessie::Clock::time_point counted_at_{};
};

inline void Charge::release() {
  if (auto *admission = std::exchange(admission_, nullptr); admission != nullptr)
    admission->release(*session_, requests_, bytes_);
}

}  // namespace nssi
