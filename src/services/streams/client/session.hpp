// SPDX-License-Identifier: BSD-3-Clause
// A process's part in streams: one runtime, the memory that it lends, and the servers that it is connected to.
#pragma once

#include <base/birth.hpp>
#include <nssi/nssi.hpp>
#include <service/connection.hpp>
#include <service/copy_buffers.hpp>
#include <streams_rpc.hpp>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace streams {

using nessie::Clock;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using Client = STREAMS::CURRENT::Client;

class Place;

/// Shared by all that this process writes and reads; gone when nothing is open any more. Any thread.
class Session {
 public:
  /// The process's one.
  static Result<std::shared_ptr<Session>> get();
  ~Session();
  Session(const Session &) = delete;

  nssi::Runtime &runtime() { return *runtime_; }
  std::optional<std::string> setting(const std::string &name) const { return runtime_->setting(name); }
  /// Those of place_at(): null, if nobody uses that one.
  std::shared_ptr<Place> place(const std::string &at);
  void note_place(const std::string &at, const std::shared_ptr<Place> &place);

  /// Memory for data on their way to servers. kNoMemory.
  Result<nnti::RegisteredBuffer> take_buffer(std::size_t size_bytes);
  void give_back(nnti::RegisteredBuffer buffer);
  /// Memory of a program's that servers of this node map: null, if `memory` is not within any.
  const nnti::RegisteredBuffer *find_allocated(std::span<const std::byte> memory, std::uint64_t &offset);
  void note_allocated(const nnti::RegisteredBuffer &buffer);
  void forget_allocated(const nnti::RegisteredBuffer &buffer);

  /// Has `work` done every so often, by a thread beside the program, until it is removed; not at the same time as that.
  using Beat = std::function<void()>;
  void add_beat(const void *owner, Beat work, std::chrono::milliseconds period);
  void remove_beat(const void *owner);
  /// A peer is on another node: what it moves needs this process to drive, also while the program computes.
  void drive_beside();

 private:
  explicit Session(std::unique_ptr<nssi::Runtime> runtime);
  void beat();
  struct Beating {
    const void *owner;
    Beat work;
    std::chrono::milliseconds period;
    Clock::time_point next;
  };
  const nessie::Birth birth_;
  std::unique_ptr<nssi::Runtime> runtime_;
  std::mutex mutex_;
  nessie::service::CopyBuffers buffers_;
  std::map<const std::byte *, const nnti::RegisteredBuffer *> allocated_;  ///< by their ends
  std::map<std::string, std::weak_ptr<Place>> places_;
  std::mutex beats_mutex_;
  std::condition_variable beats_changed_;
  std::vector<Beating> beats_;
  bool is_ending_ = false;
  std::thread beater_, driver_;
};

/// The servers of one place.
class Place {
 public:
  Place(std::shared_ptr<Session> session, std::string at) : session_(std::move(session)), at_(std::move(at)) {}
  Session &session() { return *session_; }
  const std::string &at() const { return at_; }

  /// How many there are. Errors as connect().
  Result<std::uint32_t> servers(Deadline deadline);
  /// Which of them this process puts its data to: one of its node, if there is one; otherwise the share of `rank` of
  /// `size`.
  Result<std::uint32_t> server_for(std::uint32_t rank, std::uint32_t size, Deadline deadline);
  /// Those of this node; all, if there is none.
  Result<std::vector<std::uint32_t>> nearest(Deadline deadline);
  struct Peer {
    nssi::PeerId id;
    std::uint64_t generation = 0;   ///< changes whenever the connection is another one
    std::uint64_t incarnation = 0;  ///< of the server
    bool is_near = false;           ///< it maps what is allocated here
  };
  /// The server that has that number, connected to when it is needed, and again when it was lost; by one thread, for
  /// which others wait. kTimedOut, kPeerLost: not by the deadline.
  Result<Peer> connect(std::uint32_t server, Deadline deadline);
  void lose(std::uint32_t server, std::uint64_t generation);

  /// What `call(client, options)` answers, an idempotent call; made again, to wherever the server is by then, when it
  /// was lost, until the deadline. `introduce(peer)` is called before the first call over each connection.
  template <class T, class Call, class Introduce>
  nssi::Outcome<T> ask(std::uint32_t server, Deadline deadline, const Call &call, const Introduce &introduce);

 private:
  struct Server {
    std::optional<Peer> peer;
    std::string url;
    bool is_being_greeted = false;
  };
  std::optional<Peer> connected(std::uint32_t server);
  Result<Peer> greet(std::uint32_t server, Deadline deadline);
  Result<Peer> greet_first(Deadline deadline);
  Result<Peer> greet_other(std::uint32_t server, Deadline deadline);
  Peer note(std::uint32_t server, nssi::PeerId id, const HelloResult &hello);
  void look_up(Deadline deadline);
  const std::shared_ptr<Session> session_;
  const std::string at_;
  std::mutex mutex_;
  std::condition_variable greeted_;
  std::vector<Server> servers_ = std::vector<Server>(1);  ///< never fewer than there were once
  std::size_t count_ = 1;                                 ///< of those that there are
  std::uint64_t generations_ = 0;
};

/// A server may be back soon.
inline bool may_come_back(Code code) { return code == Code::kPeerLost || code == Code::kUnavailable; }

template <class T, class Call, class Introduce>
nssi::Outcome<T> Place::ask(std::uint32_t server, Deadline deadline, const Call &call, const Introduce &introduce) {
  for (Clock::duration wait = std::chrono::milliseconds(10);;
       wait = std::min<Clock::duration>(2 * wait, std::chrono::milliseconds(500))) {
    const auto peer = connect(server, deadline);
    if (!peer.ok()) return peer.error();
    nssi::Outcome<T> outcome = Error{};
    if (Status introduced = introduce(*peer); !introduced.ok()) {
      outcome = introduced.error();
    } else {
      nssi::CallOptions options;
      options.deadline = deadline;
      options.idempotent = true;
      Client client(session_->runtime(), peer->id);
      outcome = call(client, options);
    }
    if (outcome.ok() || !may_come_back(outcome.code())) return outcome;
    lose(server, peer->generation);
    if (deadline.passed()) return outcome;
    if (auto status = nessie::service::pause(session_->runtime(), Deadline::in(wait).earlier(deadline)); !status.ok())
      return status.error();
  }
}

/// The servers at a place, as nssi::find() takes it; the same for all who say the same.
std::shared_ptr<Place> place_at(const std::shared_ptr<Session> &session, const std::string &at);
/// Those that `at` says; if it is empty, the setting `streams.at`; otherwise all that have announced themselves to this
/// user on this node, which may be none.
std::vector<std::string> places_of(const Session &session, std::string_view at);
/// The only one; waits for one. Of several it is the one that has the stream, if there is one to be read, and waits
/// until one has it; otherwise the one that does not follow a run's files. kInvalidArgument: there are several such,
/// and which. kTimedOut: none of them has it by the deadline.
Result<std::shared_ptr<Place>> find_place(const std::shared_ptr<Session> &session, std::string_view at,
                                          std::string_view to_read, Deadline deadline);
/// How long a server may wait, if its answer is to be here by the deadline.
std::uint32_t patience_until(Deadline deadline);

}  // namespace streams
