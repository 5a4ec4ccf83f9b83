// SPDX-License-Identifier: BSD-3-Clause
// What the serving side remembers of a caller: for each slot of its calls the last request, being carried out or
// answered, so that a request that comes twice is carried out once. Used by the driver.
//
// Design notes. A call's id is the caller's slot and how often that was used (client.hpp). A request with a higher
// count says that the caller has the result of the one before, or does not want it: what was kept of that is dropped.
// So there is at most one answer for each call that a caller had in progress at once, and nobody sends
// acknowledgements. The scheme of NFS version 4.1: RFC 8881, section 2.10.6.
#pragma once

#include <base/clock.hpp>
#include <nssi/drive/blocks.hpp>
#include <nssi/observe/counters.hpp>
#include <nssi/serve/admission.hpp>
#include <nssi/serve/by_peer.hpp>
#include <nssi/wire/wire.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace nssi {

using nessie::Clock;

class IncomingRequest;

/// The last request of one of the caller's slots.
struct Slot {
  /// Another request: nobody asks for the answer to the one before any more.
  void renew(std::uint64_t new_id, PeerId from, Deadline asked) {
    id = new_id;
    peer = from;
    request = nullptr;
    answer.clear();
    answer_is_lost = is_fetched = false;
    free_long_result();
    asked_until = asked;
    until = Deadline::never();
  }
  /// Nobody will ask for the answer; its caller may still be fetching it.
  void forget_answer() {
    if (long_result) long_result->taint();
    free_long_result();
    answer = Bytes();
  }
  /// Its caller did not come back for it: it takes no memory any more, but must not be carried out again.
  void lose_answer() {
    forget_answer();
    answer_is_lost = true;
  }
  bool has_answer() const { return !answer.empty() || long_result || answer_is_lost; }
  void free_long_result() {
    long_result.reset();
    charge.release();
  }
  std::uint64_t id = 0;                ///< 0: none, or none that was begun
  PeerId peer;                         ///< the connection on which it came
  IncomingRequest *request = nullptr;  ///< being carried out
  Bytes answer;                        ///< the message; empty: there is none (yet)
  bool answer_is_lost = false;
  bool is_fetched = false;                   ///< its caller has the result: nobody asks for it
  std::optional<Block> long_result;          ///< until its caller has fetched it
  Charge charge;                             ///< for that
  Deadline asked_until = Deadline::never();  ///< its caller has stopped waiting by then
  Deadline until = Deadline::never();        ///< the answer is not kept beyond that; never(): that is not settled yet
  bool listed = false;                       ///< in Sessions::expiries_
};

class Session;

/// What is looked at again at some time, and when.
struct Expiry {
  Session *session;
  std::optional<std::uint32_t> slot;  ///< none: the session, if its caller has not come back
};
using Expiries = std::multimap<Clock::time_point, Expiry>;

class Session : public Caller {
 public:
  explicit Session(const wire::SessionId &id) : id_(id) {}
  const wire::SessionId &id() const { return id_; }
  /// Null: the caller claims more calls in progress than anybody may have.
  Slot *slot_of(std::uint64_t id) {
    auto *slot = slot_at(index_of(id));
    return slot != nullptr ? slot : add_slot(index_of(id));
  }
  /// The slot, if it holds this very request.
  Slot *find(std::uint64_t id) {
    auto *slot = slot_at(index_of(id));
    return slot != nullptr && slot->id == id ? slot : nullptr;
  }
  /// Null: no request has come there, nor near it.
  Slot *slot_at(std::size_t index) {
    const auto number = index / kPageSize;
    return number < pages_.size() && pages_[number] ? &(*pages_[number])[index % kPageSize] : nullptr;
  }
  static std::uint32_t index_of(std::uint64_t id) { return static_cast<std::uint32_t>(id); }
  template <class Use> void for_each_slot(Use use) {
    for (auto &page : pages_)
      if (page) std::ranges::for_each(*page, use);
  }

  int connections = 0;
  PeerId connection;                           ///< one of them; value 0: there is none
  Deadline awaited_until = Deadline::never();  ///< without a connection: long results are not kept beyond that
  std::optional<Expiries::iterator> expiry;    ///< in Sessions::expiries_; at most one, however often it is lost
  CallerCounters counters;

 private:
  /// Small, because most callers have few calls in progress at once.
  static constexpr std::size_t kPageSize = 16;
  using Page = std::array<Slot, kPageSize>;
  Slot *add_slot(std::size_t index);

  wire::SessionId id_;
  std::vector<std::unique_ptr<Page>> pages_;  // of slots; what these are charged for is counted in Caller
};

class Sessions {
 public:
  /// `peer` has said whose requests it sends; what it is to prove a role with. Nothing: it had said so before.
  std::optional<nessie::Nonce> greet(PeerId peer, const wire::SessionId &id);
  /// Null: `peer` has not said yet.
  Session *of(PeerId peer) const {
    const auto *connection = by_peer_.find(peer);
    return connection != nullptr ? connection->session : nullptr;
  }
  /// False: that proves nothing.
  bool prove(PeerId peer, const wire::RoleProof &proof, const nessie::Credential &operators);
  /// Of one who has said who it is.
  Role role_of(PeerId peer) const { return by_peer_.find(peer)->role; }
  /// The connection is gone; what was answered is kept for a while, in case the caller comes back: long results, which
  /// count against what all callers may have, until `awaited_until`.
  void lose(PeerId peer, Deadline awaited_until);
  /// The slot has its answer, which is to be freed when its time has passed.
  void keep(Session &session, Slot &slot);
  /// How long answers are kept, from when they are there, if their callers wait for longer.
  void keep_for(std::chrono::milliseconds longest) { longest_ = longest; }
  /// Frees what nobody will ask for any more.
  void expire();
  Deadline next_expiry() const {
    return expiries_.empty() ? Deadline::never() : Deadline::at(expiries_.begin()->first);
  }
  void clear();
  /// `use(session, connection)`: one of its connections; none: value 0.
  template <class Use> void for_each(Use use) const {
    for (const auto &[id, session] : by_id_) use(*session, session->connection);
  }

 private:
  struct Connection {
    Session *session = nullptr;
    Role role = Role::kUser;
    nessie::Nonce challenge{};
  };
  PeerId connection_of(const Session &session) const;
  Deadline kept_until(const Slot &slot) const { return slot.asked_until.earlier(Deadline::in(longest_)); }
  void list(Session &session, Slot &slot);
  void expire_slot(Session &session, std::uint32_t index);
  void expire_session(Session &session);

  std::map<wire::SessionId, std::unique_ptr<Session>> by_id_;
  ByPeer<Connection> by_peer_;
  std::chrono::milliseconds longest_{0};
  Expiries expiries_;
};

}  // namespace nssi
