// SPDX-License-Identifier: BSD-3-Clause
// The serving side: operations, and requests in progress. Used by the driver.
#pragma once

#include <base/credential.hpp>
#include <nssi/nssi.hpp>
#include <nssi/serve/answers.hpp>
#include <nssi/serve/operations.hpp>
#include <nssi/serve/request.hpp>
#include <nssi/serve/session.hpp>

#include <atomic>

namespace nssi {

class Server {
 public:
  explicit Server(Core &core) : core_(core), incarnation_(nessie::random_u64() | 1) {}

  Operations &operations() { return operations_; }
  const Sessions &sessions() const { return sessions_; }
  /// Requests that were none, or for which there is no operation.
  std::uint64_t refused() const { return refused_; }
  void on_proof(PeerId from, std::span<const std::byte> message);
  void on_hello(PeerId from, std::span<const std::byte> message);
  void on_request(PeerId from, std::uint64_t id, std::span<const std::byte> message);
  void on_cancel(PeerId from, std::uint64_t id);
  void on_result_fetched(PeerId from, std::uint64_t id);
  void on_peer_lost(PeerId peer);
  void forget_all();
  /// Any thread; async-signal-safe.
  void refuse_from_now() { finishing_ = true; }
  /// Besides, those who wait to send theirs hear that they are refused.
  void finish();
  /// Requests are taken again, and the limits hold again.
  void begin_anew();
  /// What was accepted has been answered, and the answers are where their callers wanted them.
  bool is_idle() const;
  /// Tells callers who wait for that when their requests may come, and those who wait for room for a result. In each
  /// turn while there are any.
  void invite();

  /// How long at most; see Sessions::keep_for().
  void keep_answers_for(std::chrono::milliseconds longest) { sessions_.keep_for(longest); }
  /// Frees what nobody will ask for any more.
  void expire();
  Deadline next_expiry() const;

 private:
  /// The slot of that very request; null: it is over, or never was.
  Slot *find(PeerId from, std::uint64_t id) const;
  void refuse(PeerId caller, std::uint64_t id, const Error &error);
  void turn_away(PeerId caller, Session &session, const wire::Request &request, const Offered &offered);
  void repeat(Slot &slot, PeerId from, const wire::Request &request);
  void carry_out(IncomingRequest &request);
  void begin(IncomingRequest &request, const Offered &offered);
  void begin_in_pool(IncomingRequest &request, const Offered &offered, bool may_exceed);
  void submit(IncomingRequest &request, const Offered &offered);
  IncomingRequest &next_free();
  void take(IncomingRequest &next);
  void put_back(IncomingRequest &request);

  Core &core_;
  const std::uint64_t incarnation_;
  Operations operations_;
  Sessions sessions_;
  Answers answers_{core_, sessions_};
  std::vector<std::unique_ptr<IncomingRequest>> requests_;
  std::vector<IncomingRequest *> active_, free_;
  std::atomic<bool> finishing_{false};
  bool has_waiting_ = false;  ///< callers, to be told when their requests may come
  std::uint64_t refused_ = 0;
  Clock::time_point next_warning_;  ///< of proofs that are none: not before
};

}  // namespace nssi
