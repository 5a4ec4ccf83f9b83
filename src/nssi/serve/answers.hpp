// SPDX-License-Identifier: BSD-3-Clause
// Answers to requests, and those that wait here: long results until their callers have fetched them, handlers until
// there is room for such a result. Used by the driver.
#pragma once

#include <nssi/nssi.hpp>
#include <nssi/serve/operations.hpp>
#include <nssi/serve/session.hpp>
#include <nssi/wire/payload.hpp>

#include <vector>

namespace nssi {

class Core;
struct EventState;

class Answers {
 public:
  Answers(Core &core, Sessions &sessions) : core_(core), sessions_(sessions) {}

  /// Answers a request of the session, and keeps the answer for as long as it may be asked for again. kCancelled: the
  /// caller has given the request up. kPeerLost: it is not here; it gets the answer when it comes back.
  Status answer(Session &session, std::uint64_t id, const Payload &result, const Offered &offered);
  Status answer(Session &session, std::uint64_t id, const Error &error);
  /// Tells the caller where the slot's long result is.
  Status offer_long_result(Slot &slot);
  /// Answers what cannot be a request. Not kept.
  void refuse(PeerId caller, std::uint64_t id, const Error &error);

  /// False: there is room for a result of so many bytes that does not fit a message. Otherwise `room` is set when there
  /// is, or await_no_more() to be called.
  bool await_room(Session &session, const Offered &offered, std::uint64_t size_bytes, EventState &room);
  void await_no_more(const EventState &room);
  bool has_awaiting() const { return !awaiting_.empty(); }
  /// Tells those who wait for room. In each turn while there are any.
  void give_room();

 private:
  /// A handler that waits for room for its result.
  struct Awaiting {
    Session *session;
    const Admission *admission;
    std::uint64_t size_bytes;
    EventState *room;
    bool has_room(std::uint64_t promised) const {
      return admission->has_room_for_result(*session, size_bytes + promised);
    }
  };
  template <class Result> Status answer(Session &session, Slot &slot, Result message);
  Status answer_long(Session &session, Slot &slot, const Payload &result, const Offered &offered);

  Core &core_;
  Sessions &sessions_;
  Bytes scratch_;
  std::vector<Awaiting> awaiting_;  ///< in the order in which they came
};

}  // namespace nssi
