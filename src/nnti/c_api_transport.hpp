// SPDX-License-Identifier: BSD-3-Clause
// An open transport of the C interface: an Endpoint, the buffers registered with it, the operations in progress, and
// the threads that wait.
//
// Design notes. One mutex guards everything. A thread that waits with nothing to do blocks inside Endpoint::wait, which
// delivers nothing, so it gives the mutex up meanwhile; whoever wants the mutex then wakes it (lock()). At most one
// thread blocks so (the driver); the others sleep until the driver has delivered something or hands over.
// Endpoint callbacks may come in the middle of any call, so completions and lost peers are noted and worked off by
// settle(), at the end of every call and turn.
#pragma once

#include <nnti/c_api.hpp>
#include <nnti/c_api_inbox.hpp>
#include <nnti/c_api_wire.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace nnti::c_api {

/// How a call of the C interface ends: a result, and a sentence for nnti_last_error().
struct Outcome {
  NNTI_result_t result = NNTI_OK;
  std::string message;
  Outcome() = default;
  Outcome(NNTI_result_t code, std::string text) : result(code), message(std::move(text)) {}
  Outcome(const Error &error) : result(result_of(error.code)), message(error.message) {}
  bool ok() const { return result == NNTI_OK; }
};

/// A completion that waits to be taken.
struct Event {
  NNTI_buf_ops_t op = 0;
  NNTI_result_t result = NNTI_OK;
  std::uint64_t offset = 0, length = 0;
  std::shared_ptr<const NNTI_peer_t> peer;  ///< the other side
  bool outward = false;                     ///< the data went from here to the peer
  std::optional<std::size_t> element;       ///< a message's, of the inbox
};

struct Registration {
  NNTI_buffer_t handle{};
  std::uint64_t only_for = 0;              ///< instance of the peer that may use it; 0: any
  std::optional<RegisteredBuffer> memory;  ///< empty if no peer may reach it one-sidedly
  std::size_t in_progress = 0;             ///< operations of ours, and arriving messages, that use the memory
  std::optional<Inbox> inbox;              ///< if it receives messages
  std::deque<Event> events;

  std::uint64_t size_bytes() const { return handle.payload_size * handle.num_elements; }
  std::span<std::byte> bytes() const { return {reinterpret_cast<std::byte *>(handle.payload), size_bytes()}; }
};

class CTransport final : private EventSink {
 public:
  static std::variant<std::shared_ptr<CTransport>, Outcome> open(NNTI_transport_id_t id, const char *url);
  ~CTransport() override;

  std::uint64_t instance() const { return me_.peer.instance; }
  const NNTI_peer_t &me() const { return me_; }
  const std::string &url() const { return endpoint_->url(); }

  Outcome connect(const std::string &url, int timeout_ms, NNTI_peer_t *peer);
  Outcome disconnect(std::uint64_t instance);
  Outcome register_memory(char *buffer, std::uint64_t element_size, std::uint64_t elements, NNTI_buf_ops_t ops,
                          const NNTI_peer_t *peer, NNTI_buffer_t *handle);
  Outcome unregister_memory(std::uint64_t id);
  Outcome send(std::uint64_t peer_instance, std::uint64_t message_id, const NNTI_buffer_t *destination);
  enum class Direction { kPut, kGet };
  Outcome access(Direction direction, std::uint64_t local_id, std::uint64_t local_offset, std::uint64_t length,
                 const NNTI_buffer_t &remote, std::uint64_t remote_offset);
  enum class Want { kAny, kAll };
  /// `ids` without the skipped entries; `taken` receives (index, status) of each completion taken.
  Outcome wait(Want want, const std::vector<std::uint64_t> &ids, NNTI_buf_ops_t ops, int timeout_ms,
               std::vector<std::pair<std::size_t, NNTI_status_t>> &taken);
  /// Ends all waits, then closes the endpoint.
  void close();

 private:
  using Guard = std::unique_lock<std::mutex>;
  struct Peer {
    std::uint64_t instance = 0;  ///< 0 until its hello has come
    bool greeted = false;        ///< we have said ours
    std::shared_ptr<const NNTI_peer_t> handle;
  };
  /// Something this process started, or a large message being fetched. Lives until its completion.
  struct Operation final : Completion {
    enum class Kind { kSend, kPut, kGet, kFetch };
    CTransport *owner = nullptr;
    std::uint64_t id = 0;
    Kind kind = Kind::kSend;
    PeerId peer;
    std::uint64_t local = 0;  ///< registration
    std::uint64_t local_offset = 0, length = 0;
    std::uint64_t remote = 0;  ///< registration at the peer; kFetch: the sender's operation
    std::uint64_t remote_offset = 0;
    bool tell_target = false;
    bool posted = false;                      ///< the endpoint has it
    std::optional<RegisteredBuffer> exposed;  ///< a large message while the peer fetches it
    void on_complete(Status status) override { owner->finished_.emplace_back(id, std::move(status)); }
  };
  struct DescriptionKey {
    std::uint64_t peer, buffer;
    auto operator<=>(const DescriptionKey &) const = default;  // NOLINT(modernize-use-nullptr)
  };

  explicit CTransport(std::uint64_t instance);
  void on_message(PeerId from, std::span<const std::byte> message) override;
  void on_peer_lost(PeerId peer, const Error &error) override { lost_.emplace_back(peer, error); }

  // The lock and the waiting threads (c_api_transport.cpp).
  /// Who holds the guard has the endpoint to himself.
  Guard lock();
  /// Makes the thread that waits in the endpoint come out of it.
  void claim(Guard &guard);
  Outcome wait_until(Guard &guard, Deadline deadline, const std::function<std::optional<Outcome>()> &check);
  void block(Guard &guard, Deadline deadline);
  void turn();
  void settle();

  // Peers.
  Peer *find_peer(PeerId id);
  std::optional<PeerId> find_instance(std::uint64_t instance) const;
  Status say(PeerId to, Kind kind, const Control &fields, std::span<const std::byte> payload = {});
  void say_surely(PeerId to, Kind kind, const Control &fields, std::span<const std::byte> payload = {});
  void flush_outbox();
  void forget_peer(PeerId id, NNTI_result_t result);
  void reject(PeerId id, const char *why);
  Status greet(PeerId id);
  void on_hello(PeerId from, const Control &control, std::span<const std::byte> url);

  // Buffers and operations (c_api_operations.cpp).
  Registration *find_buffer(std::uint64_t id);
  Operation &new_operation(Operation::Kind kind, PeerId peer, Registration &local);
  void finish(std::uint64_t operation, NNTI_result_t result);
  void fail_operations_with(PeerId peer, NNTI_result_t result);
  Outcome start_access(Operation &operation, const RemoteBuffer &remote);
  Outcome ask_description(Operation &operation);
  Outcome send_small(Operation &operation, Kind kind);
  Outcome send_large(Operation &operation);
  void on_described(PeerId from, const Control &control);
  void on_describe(PeerId from, const Control &control);
  void on_clear(PeerId from, const Control &control);
  void on_sent(PeerId from, const Control &control);
  void on_accessed(PeerId from, const Control &control);

  // Arriving messages (c_api_operations.cpp).
  void on_send(PeerId from, const Control &control, std::span<const std::byte> payload);
  void on_resend(PeerId from, const Control &control, std::span<const std::byte> payload);
  NNTI_result_t check_arrival(Registration *target, PeerId from, std::uint64_t length);
  void deliver(Registration &target, const Arrival &arrival, std::span<const std::byte> payload);
  void delivered(Registration &target, const Arrival &arrival);
  void fetch(Registration &target, const Arrival &arrival);
  void pump(Registration &target);
  void add_event(Registration &target, Event event);
  void answer_send(PeerId to, std::uint64_t operation, NNTI_result_t result);
  std::optional<Outcome> take(Want want, const std::vector<std::uint64_t> &ids, NNTI_buf_ops_t ops,
                              std::vector<std::pair<std::size_t, NNTI_status_t>> &taken);

  NNTI_peer_t me_{};
  NNTI_transport_id_t id_ = NNTI_TRANSPORT_AUTO;
  std::mutex mutex_;
  std::condition_variable unblocked_, claims_done_, turned_, left_;
  bool blocked_ = false, driven_ = false, closed_ = false;
  int claims_ = 0, inside_ = 0;

  std::unordered_map<std::uint64_t, Peer> peers_;
  std::unordered_map<std::uint64_t, PeerId> by_instance_;
  std::unordered_map<std::uint64_t, Registration> buffers_;
  std::uint64_t receive_queue_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Operation>> operations_;
  std::uint64_t next_operation_ = 1;
  std::map<DescriptionKey, RemoteBuffer> descriptions_;
  std::map<DescriptionKey, std::vector<std::uint64_t>> asked_;  ///< operations that wait for a description
  std::deque<std::pair<PeerId, std::vector<std::byte>>> outbox_;
  std::vector<std::pair<std::uint64_t, Status>> finished_;
  std::vector<std::pair<PeerId, Error>> lost_;
  std::unique_ptr<Endpoint> endpoint_;  ///< last: closed first, while what it calls back into still lives
};

}  // namespace nnti::c_api
