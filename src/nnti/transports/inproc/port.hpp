// SPDX-License-Identifier: BSD-3-Clause
// What the threads of two endpoints share: a port for each endpoint, a link for each connection.
#pragma once

#include "base/fd.hpp"
#include "nnti/transport/given_descriptors.hpp"
#include "nnti/transport/transport.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace nnti::inproc {

inline constexpr std::size_t kMaxMessageBytes = 8192;
inline constexpr int kCredits = 256;  ///< messages on their way in one direction

class InprocConnection;
class Port;

enum class LinkState { kAsked, kAccepted, kRefused, kGone };

struct Item;

/// One connection. Side 0 connected, side 1 accepted.
struct Link {
  std::array<std::shared_ptr<Port>, 2> ports;
  std::array<InprocConnection *, 2> ends{};     ///< each touched only by the thread of its own endpoint
  std::array<std::atomic<int>, 2> in_flight{};  ///< sent by that side, not yet delivered
  std::array<std::atomic<bool>, 2> starves{};   ///< that side waits for credits
  std::atomic<LinkState> state{LinkState::kAsked};
  std::array<GivenDescriptors, 2> given;  ///< to that side
  nessie::Nonce nonce{};
  nessie::Proof proof{};  ///< of the side that connects
  // The thread of that side only:
  bool is_awaited = true;   ///< it has not learnt yet that it is connected
  std::vector<Item> early;  ///< what has come nevertheless
};

/// What comes to a port.
struct Item {
  enum class Kind { kConnect, kAnswer, kMessage, kCredits, kEnd };
  Kind kind;
  std::shared_ptr<Link> link;
  int to_side;
  std::vector<std::byte> bytes;
  MessageKind message_kind = MessageKind::kUser;
};

/// A registration as others see it.
struct Registration {
  std::shared_mutex in_use;  ///< shared by transfers; exclusive to end it
  bool alive = true;
  std::uint64_t key = 0;
  std::span<std::byte> bytes;
  Rights rights = Rights::kNone;
};

/// What waits for one endpoint.
class Port {
 public:
  Port();
  /// False if the port is closed; `item` is dropped then.
  bool post(Item item);
  bool take(Item &item);
  bool has_items() const { return pending_.load(std::memory_order_seq_cst) != 0; }
  /// Refuses items from now on; links that wait for an answer learn that nobody is here.
  void close();

  int wait_fd() const { return event_.get(); }
  bool arm();
  void disarm(bool fd_ready);

  std::uint32_t add_registration(std::shared_ptr<Registration> registration);
  void end_registration(std::uint32_t slot);
  std::shared_ptr<Registration> find_registration(std::uint32_t slot);

 private:
  std::mutex mutex_;
  std::deque<Item> items_;
  bool closed_ = false;
  std::atomic<std::size_t> pending_{0};
  std::atomic<bool> blocked_{false};
  nessie::Fd event_;
  std::mutex registrations_mutex_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Registration>> registrations_;
  std::uint32_t next_slot_ = 1;
};

/// The ports of this process, by name.
void add_port(const std::string &name, std::shared_ptr<Port> port);
void remove_port(const std::string &name);
/// Null if no endpoint of that name lives in this process.
std::shared_ptr<Port> find_port(const std::string &name);
bool has_port(const std::string &name);

}  // namespace nnti::inproc
