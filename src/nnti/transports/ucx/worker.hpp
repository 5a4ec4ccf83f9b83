// SPDX-License-Identifier: BSD-3-Clause
// UCX's objects: one context and one worker for the whole transport, and an endpoint for each peer.
#pragma once

#include <base/config.hpp>
#include <nessie/result.hpp>

#include "nnti/transports/ucx/library.hpp"
#include "nnti/transports/ucx/wire.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nnti::ucx {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

/// The error of a UCX call that returned `status`.
Error ucx_error(std::string_view what, ucs_status_t status);

class WorkerEvents;

/// An operation that UCX has not finished. It must stay in place until then.
struct Work {
  enum class Kind { kFrame, kChunkSent, kChunkReceived };
  Kind kind = Kind::kFrame;
  WorkerEvents *events = nullptr;  ///< set by the worker
  std::uint64_t token = 0;         ///< ours of the connection
};

/// A frame that is being sent.
struct FrameSlot : Work {
  std::array<std::byte, framed::kMaxFrameBytes> bytes;
};

/// A chunk that is being sent, or received.
struct ChunkSlot : Work {
  Chunk chunk;
};

/// A chunk's bytes as they arrive: here already, or (rendezvous) to be fetched by Worker::receive().
struct Payload {
  void *data = nullptr;
  std::size_t size_bytes = 0;
  bool here = true;
};

/// What a worker tells, from within progress(), and from within what sends, receives and closes. Nobody may call the
/// worker's progress() from there.
class WorkerEvents {
 public:
  virtual void on_frame(std::span<const std::byte> bytes) = 0;
  /// True: the payload is being received.
  virtual bool on_chunk(std::span<const std::byte> header, const Payload &payload) = 0;
  virtual void on_complete(Work &work, ucs_status_t status) = 0;
  /// The endpoint that was made with `token` failed.
  virtual void on_failure(std::uint64_t token, ucs_status_t status) = 0;

 protected:
  ~WorkerEvents() = default;
};

class Worker;

/// UCX's endpoint for one peer. When dropped, it ends at once, with everything in flight on it: on_complete() says of
/// each when it is over, some during later calls of Worker::progress().
class Link {
 public:
  Link(WorkerEvents &events, std::uint64_t token) : events_(events), token_(token) {}
  ~Link();
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  /// UCS_OK: done, no on_complete() follows; UCS_INPROGRESS: it will. Otherwise it failed. What is sent is borrowed
  /// until it is done.
  ucs_status_t send_frame(std::span<const std::byte> bytes, Work &work);
  ucs_status_t send_chunk(std::span<const std::byte> bytes, ChunkSlot &slot);
  /// The devices by which UCX reaches the peer: "tcp/eth0".
  std::string devices() const;

 private:
  friend class Worker;
  static void handle_failure(void *self, ucp_ep_h endpoint, ucs_status_t status);
  ucs_status_t send(unsigned id, std::span<const std::byte> header, std::span<const std::byte> bytes,
                    std::uint32_t flags, Work &work);

  WorkerEvents &events_;
  std::uint64_t token_;
  ucp_ep_h endpoint_ = nullptr;
};

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> open(const nessie::Config &config, WorkerEvents &events);
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  const std::vector<std::byte> &address() const { return address_; }
  /// The transports and devices that UCX chooses among: "tcp/eth0, tcp/lo".
  std::string devices() const;
  /// Readable when there is something to do, after may_block() said true; -1 if a transport of UCX has none.
  int wait_fd() const { return wait_fd_; }
  bool may_block();
  /// Must not be nested. Returns the number of things that UCX did.
  unsigned progress() { return library().worker_progress(worker_); }

  /// `token` is what on_failure() is told. kUnsupported: no transport of UCX reaches the peer, or tells of its end.
  Result<std::unique_ptr<Link>> connect(const std::vector<std::byte> &address, std::uint64_t token);
  /// Only from within on_chunk(), for a payload that is not here. Statuses as Link::send_frame().
  ucs_status_t receive(const Payload &payload, std::span<std::byte> into, Work &work);

 private:
  explicit Worker(WorkerEvents &events) : events_(events) {}
  Status open_context(const nessie::Config &config);
  Status open_worker();
  Status learn_address();
  Status set_handler(unsigned id, ucp_am_recv_callback_t callback);

  static ucs_status_t handle_frame(void *self, const void *header, std::size_t header_size, void *data,
                                   std::size_t size, const ucp_am_recv_param_t *parameters);
  static ucs_status_t handle_chunk(void *self, const void *header, std::size_t header_size, void *data,
                                   std::size_t size, const ucp_am_recv_param_t *parameters);

  WorkerEvents &events_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int wait_fd_ = -1;
  std::vector<std::byte> address_;
};

}  // namespace nnti::ucx
