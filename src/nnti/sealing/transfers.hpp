// SPDX-License-Identifier: BSD-3-Clause
// Sealed puts and gets, in chunks. What crosses the network is sealed; a registered buffer is read and written by its
// owner only, when a request comes, so that key, bounds and rights are checked where the data lives.
//
//   get  the initiator lends a window; the owner seals the chunk, writes it there, and says so; the initiator opens it
//   put  the initiator seals the chunk into a window and lends it; the owner reads it, opens it, and says so
#pragma once

#include "nnti/sealing/wire.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace nnti::sealing {

/// What the transfers of one connection need of it.
class TransferHost {
 public:
  virtual Connection &inner() = 0;
  /// Sends a message of the seal's own, now or when there are credits.
  virtual void tell(MessageKind kind, std::span<const std::byte> message) = 0;
  virtual std::optional<MemoryRegion> find_memory(std::uint64_t key, std::uint32_t slot) = 0;
  /// For the data of puts and of gets, to the peer and from it. Each has a key of its own: both sides number theirs.
  virtual Cipher &put_out() = 0;
  virtual Cipher &put_in() = 0;
  virtual Cipher &get_out() = 0;
  virtual Cipher &get_in() = 0;

 protected:
  ~TransferHost() = default;
};

/// A put or get of the application's; exactly one of `destination` and `source` is used.
struct Operation {
  RemoteBuffer remote;
  std::uint64_t offset = 0;
  std::size_t size_bytes = 0;
  std::byte *destination = nullptr;
  const std::byte *source = nullptr;
  Completion *completion = nullptr;
};

/// The initiator's side.
class Initiator {
 public:
  explicit Initiator(TransferHost &host);
  ~Initiator();
  void start(const Operation &operation);
  /// False: the answer makes no sense.
  bool on_done(const BulkDone &done);
  /// Completes everything that is pending.
  void abandon(const Error &error);

 private:
  struct Window;
  struct Running {
    Operation operation;
    bool asked = false;
    std::size_t begun = 0, in_flight = 0;
    Status status;
    /// The owner is asked once also for nothing.
    bool has_work() const { return status.ok() && (!asked || begun < operation.size_bytes); }
    bool over() const { return in_flight == 0 && !has_work(); }
  };
  void pump();
  Status begin_chunk(const std::shared_ptr<Running> &running, Window &window);
  std::shared_ptr<Running> next_with_work() const;
  Result<Window *> free_window();
  Status open_chunk(const Window &window, const BulkDone &done);
  void settle(const std::shared_ptr<Running> &running, Status status);

  TransferHost &host_;
  std::vector<std::unique_ptr<Window>> windows_;
  std::deque<std::shared_ptr<Running>> running_;
  std::uint64_t next_operation_ = 1, next_number_ = 1;
};

/// The owner's side.
class Owner {
 public:
  explicit Owner(TransferHost &host);
  ~Owner();
  /// False: the request makes no sense, or there are too many.
  bool on_request(const BulkRequest &request);

 private:
  struct Serving;
  Serving *free_serving();
  void begin_get(Serving &serving, const MemoryRegion &region);
  void finish(Serving &serving, const Status &moved);
  Status store(Serving &serving);

  TransferHost &host_;
  std::vector<std::unique_ptr<Serving>> serving_;
  std::uint64_t next_number_ = 1;
};

}  // namespace nnti::sealing
