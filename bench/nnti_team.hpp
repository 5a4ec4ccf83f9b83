// SPDX-License-Identifier: BSD-3-Clause
// Leaders and followers: the two sides of the workloads of NNTI. Each is a process (inproc: a thread) with an endpoint,
// bound to a core. Followers answer messages and lend memory; leaders measure.
#pragma once

#include "crew.hpp"
#include "options.hpp"

#include <nnti/nnti.hpp>

#include <memory>
#include <span>

namespace bench {

/// How the two sides wait for each other.
struct Waiting {
  const char *mode;     ///< as in the report
  bool polls;           ///< nothing but progress(), in a loop; otherwise wait() when there is nothing to do
  const char *spin_us;  ///< nnti.spin_us, if it waits; empty: the default
};
inline constexpr Waiting kPolling{"polling", true, ""};
inline constexpr Waiting kBlocking{"blocking", false, "0"};
inline constexpr Waiting kDefaultWait{"default", false, ""};

struct Team {
  int leaders = 1;
  int followers = 1;  ///< as many as leaders, or one for all
  Waiting waiting = kPolling;
  int answer_every = 1;             ///< which of a leader's messages a follower sends back: every n-th
  bool takes_orders = false;        ///< a message is a PutOrder: a follower carries it out, and then answers
  std::size_t memory_bytes = 4096;  ///< that a follower lends, of each kind
};

/// What a follower tells each leader that has connected.
struct LentMemory {
  nnti::RemoteBuffer mapped;       ///< made by Endpoint::allocate()
  nnti::RemoteBuffer application;  ///< the follower's own
};

/// Asks a follower for a put.
struct PutOrder {
  nnti::RemoteBuffer into;
  std::uint64_t size_bytes = 0;
};

/// One side: an endpoint, and the way in which its loop waits.
class Side : public nnti::EventSink {
 public:
  /// Opens the endpoint.
  nessie::Status open(const Options &options, const Team &team, Board &board, bool listen);
  nnti::Endpoint &endpoint() { return *endpoint_; }
  /// One turn of a loop: what has happened is delivered; if nothing has, waits as the mode says.
  void turn();
  /// Why the loop should end early: the peer is lost, the crew was stopped, or (leaders only) nothing moved for half a
  /// minute.
  const nessie::Status &trouble() const { return trouble_; }

 protected:
  void give_up(nessie::Error error);
  /// Whether a silence of half a minute is trouble.
  virtual bool is_impatient() const = 0;

 private:
  void look_around(bool first_since_something_moved);

  std::unique_ptr<nnti::Endpoint> endpoint_;
  Board *board_ = nullptr;
  bool polls_ = true, yields_ = false;
  unsigned idle_turns_ = 0;
  nessie::Deadline watchdog_ = nessie::Deadline::never();
  nessie::Status trouble_;
};

/// The measuring side. Everything returns as soon as it is done, or when there is trouble.
class Leader : public Side {
 public:
  /// kLentMemory: waits until a follower has told what it lends.
  enum class Invitation { kLentMemory, kNone };
  nessie::Status connect(const std::string &url, Invitation invitation = Invitation::kLentMemory);
  nnti::PeerId follower() const { return follower_; }
  const LentMemory &lent() const { return lent_; }

  /// Sends; drives progress while there are no credits.
  void send(std::span<const std::byte> message);
  /// Sends `messages` of them and waits for `answers` answers.
  void exchange(std::span<const std::byte> message, int messages, int answers);
  void get(const nnti::RemoteBuffer &remote, std::span<std::byte> local);
  void put(const nnti::RemoteBuffer &remote, std::span<const std::byte> local);
  /// A put into the follower's memory, and one by the follower, of as many bytes, into ours; returns when both are
  /// complete. For a team whose followers take orders.
  void put_both_ways(const nnti::RemoteBuffer &remote, std::span<const std::byte> local,
                     const nnti::RemoteBuffer &ours);

  void on_message(nnti::PeerId from, std::span<const std::byte> message) override;
  void on_peer_lost(nnti::PeerId peer, const nessie::Error &error) override;

 protected:
  bool is_impatient() const override { return true; }

 private:
  class Count;
  void wait_for(const Count &completions);

  nnti::PeerId follower_;
  LentMemory lent_;
  bool invited_ = false;
  std::uint64_t answers_ = 0;
};

/// What a leader does between connecting and leaving. All leaders have met before; `lane` is where it leaves figures.
using Lead = std::function<nessie::Status(Leader &leader, Lane &lane)>;

/// Runs a team once. Its members 0 to leaders-1 are the leaders. kUnsupported, with the reason, if the transport cannot
/// be opened here.
nessie::Result<std::unique_ptr<Board>> run_team(const Options &options, const Team &team, const Lead &lead);

}  // namespace bench
