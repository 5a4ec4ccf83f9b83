// SPDX-License-Identifier: BSD-3-Clause
// How much of a service is in progress, for all its callers and for each of them. A request for which there is no room
// is turned away, and remembered by its number: callers are invited to send again, one request each in turn, when there
// is room. Used by the driver.
//
// Design notes. What waits, waits at its caller: a service that is flooded keeps a note of each request. While
// a caller has requests that were turned away, those that follow are turned away, too, so that they begin in their
// order; while others wait for room, nobody passes them. An invitation holds room free; a caller who does not come for
// a while loses it, and is not invited again before it is heard of.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace nssi {

class Admission;
class Caller;

/// A caller whose requests were turned away.
struct Waiting {
  struct Entry {
    std::uint64_t id, bytes;
    PeerId peer;  ///< the connection on which it came
  };
  using Requests = std::map<std::uint64_t, Entry>;  ///< by arrival
  /// That of the id's slot of calls, perhaps of another id; or requests.end().
  Requests::iterator of_slot(std::uint64_t id) {
    const auto found = by_slot.find(static_cast<std::uint32_t>(id));
    return found == by_slot.end() ? requests.end() : requests.find(found->second);
  }
  Requests::iterator find(std::uint64_t id) {
    const auto entry = of_slot(id);
    return entry != requests.end() && entry->second.id == id ? entry : requests.end();
  }
  void add(const Entry &entry) {
    by_slot[static_cast<std::uint32_t>(entry.id)] = ++arrivals;
    requests.emplace(arrivals, entry);
  }
  void erase(Requests::iterator entry) {
    by_slot.erase(static_cast<std::uint32_t>(entry->second.id));
    requests.erase(entry);
  }
  bool is_invited(Requests::iterator entry) const { return entry->first <= last_invited; }

  Caller *caller = nullptr;
  Requests requests;
  std::unordered_map<std::uint32_t, std::uint64_t> by_slot;  ///< their arrival: a caller waits for one of each slot
  std::uint64_t arrivals = 0, last_invited = 0;              ///< there is room for those up to that one
  std::size_t invited = 0;                                   ///< how many these are
  bool queued = false;                                       ///< among those who are invited when there is room
  bool is_silent = false;                                    ///< was invited, and did not come
};

/// What a caller has in progress at one service. Aligned, so that the place of one is found by shifting.
struct alignas(32) Share {
  std::uint64_t requests = 0, bytes = 0;
  std::uint64_t result_bytes = 0;  ///< of these, of results that wait for their caller
  std::unique_ptr<Waiting> waiting;
};

/// Who has requests: what is in progress at each service.
class Caller {
 public:
  Share &share(std::size_t service) { return service < shares_.size() ? shares_[service] : add_share(service); }
  bool has_requests() const {
    return std::ranges::any_of(shares_, [](const Share &share) { return share.requests != 0; });
  }
  /// At all services.
  std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const auto &share : shares_) sum += share.requests;
    return sum;
  }

 private:
  Share &add_share(std::size_t service);
  std::vector<Share> shares_;
};

/// Room that is taken until this is dropped. Not to outlive the admission and the caller.
class Charge {
 public:
  Charge() = default;
  /// `result_bytes`, of `bytes`, are a result's.
  Charge(Admission &admission, Caller &caller, std::uint64_t requests, std::uint64_t bytes, std::uint64_t result_bytes)
      : admission_(&admission), caller_(&caller), requests_(requests), bytes_(bytes), result_bytes_(result_bytes) {}
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
    std::swap(caller_, other.caller_);
    std::swap(requests_, other.requests_);
    std::swap(bytes_, other.bytes_);
    std::swap(result_bytes_, other.result_bytes_);
  }
  Admission *admission_ = nullptr;
  Caller *caller_ = nullptr;
  std::uint64_t requests_ = 0, bytes_ = 0, result_bytes_ = 0;
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
  void set_limits(const Limits &limits);
  /// These stay when limits are set for all services.
  void set_own_limits(const Limits &limits) {
    set_limits(limits);
    has_own_limits_ = true;
  }
  bool has_own_limits() const { return has_own_limits_; }

  /// False: there is no room, or others were there before.
  bool admit(Caller &caller, std::uint64_t id, std::uint64_t bytes, Charge &charge);
  /// Whether there is room for a result of so many bytes beside those that wait for their callers. What requests are
  /// charged for beforehand does not count: they may be the very ones that wait for room.
  bool has_room_for_result(Caller &caller, std::uint64_t bytes) const;
  /// A result that waits for its caller, also if there is no room for it. It counts as a request.
  Charge charge(Caller &caller, std::uint64_t bytes);
  /// Notes a request that was not admitted, which its caller will send again when it is invited.
  void turn_away(Caller &caller, PeerId from, std::uint64_t id, std::uint64_t bytes);
  /// The caller does not want that request any more.
  void withdraw(Caller &caller, std::uint64_t id);
  /// That connection is gone: what was turned away there will be sent anew.
  void forget(Caller &caller, PeerId peer);
  /// Where the next invitation goes; there is room for its request from now on. Nothing: there is none.
  std::optional<PeerId> invite();
  /// Who was turned away is invited, and results go out, whether or not there is room, until the limits hold again.
  void lift_limits();
  void restore_limits() { in_force_ = &limits_; }
  /// Takes back the invitations that were not heeded.
  void expire();
  nessie::Deadline next_expiry() const;
  /// A guess of when there is room for one more.
  std::chrono::milliseconds hint();

  bool may_invite() const { return !queue_.empty(); }
  bool is_idle() const { return all_.requests == invited_ && all_.bytes == invited_bytes_; }
  std::uint64_t requests() const { return all_.requests - invited_; }
  std::uint64_t bytes() const { return all_.bytes - invited_bytes_; }
  std::size_t callers_waiting() const { return waiting_.size(); }

 private:
  friend class Charge;
  struct Invitation {
    nessie::Clock::time_point until;
    Caller *caller;
    std::uint64_t id;
  };
  Share &share_of(Caller &caller) const;
  bool fits(const Share &share, std::uint64_t bytes) const;
  bool fits_caller(const Share &share, std::uint64_t bytes) const;
  void add(Share &share, std::uint64_t requests, std::uint64_t bytes);
  void take_away(Share &share, std::uint64_t requests, std::uint64_t bytes);
  void release(Caller &caller, std::uint64_t requests, std::uint64_t bytes, std::uint64_t result_bytes);
  std::optional<std::uint64_t> take_invitation(Caller &caller, std::uint64_t id);
  void end_invitation(const Caller &caller, std::uint64_t id);
  void uninvite(Share &share, const Waiting::Entry &entry);
  void uninvite_all(Share &share);
  void remove(Share &share, Waiting::Requests::iterator entry);
  void enqueue(Waiting &waiting);
  void drop(Share &share);

  Share all_;                                      ///< of all callers, with what is kept free for invited ones
  std::uint64_t invited_ = 0, invited_bytes_ = 0;  ///< of that
  const Service service_;
  const std::size_t index_;
  Limits limits_;
  const Limits *in_force_ = &limits_;  ///< or none, while they are lifted
  std::deque<Waiting *> queue_;
  std::deque<Invitation> invitations_;  ///< one for each request that is invited
  std::unordered_set<Waiting *> waiting_;
  bool has_own_limits_ = false;
  std::uint64_t finished_ = 0, finished_before_ = 0;  ///< for the hint
  nessie::Clock::time_point counted_at_ = nessie::Clock::now();
};

inline void Charge::release() {
  if (auto *admission = std::exchange(admission_, nullptr); admission != nullptr)
    admission->release(*caller_, requests_, bytes_, result_bytes_);
}

}  // namespace nssi
