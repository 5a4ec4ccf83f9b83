// SPDX-License-Identifier: BSD-3-Clause
// The network, through libfabric.
//
// Design notes. Providers end the whole connection when a peer presents a key that is not, or no longer, valid: a late
// access to a buffer would cost all messages under way. So a registered buffer is never exposed to the fabric. A peer
// that wants to get or put sends a frame that names the buffer by our own, unguessable key, and exposes its own side of
// this one transfer; we check key, bounds and rights, and write or read. What fits a frame travels in it. A software
// provider needs the owner's processor for a transfer anyway.
//
// One libfabric endpoint serves all peers. What libfabric reports is only noted while the queue is read (poll); it is
// worked off in progress().
#pragma once

#include "nnti/framed/transport.hpp"
#include "nnti/transports/ofi/connection.hpp"
#include "nnti/transports/ofi/slots.hpp"

#include <deque>
#include <list>
#include <memory>
#include <vector>

namespace nnti::ofi {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

class OfiTransport final : public framed::Transport, public Network {
 public:
  OfiTransport(const TransportOptions &options, std::unique_ptr<Fabric> fabric)
      : Transport("ofi", options), fabric_(std::move(fabric)), slots_(std::make_shared<SlotPool>(*fabric_)) {
    fabric_->keep(slots_);
  }
  ~OfiTransport() override { leave_all(); }
  Status start(const nessie::Config &config, bool listens);

  Status can_reach(const nessie::Url &url) const override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  void disarm(bool fd_ready) override { Transport::disarm(fd_ready || watch_at_.passed()); }
  Deadline timer() const override;

 private:
  struct Served;
  struct Chunk : Work {
    Served *served = nullptr;
    RegistrationCache::Lease lease;  ///< until the completion
  };
  /// An access of a peer to memory of ours, under way.
  struct Served {
    std::uint64_t token = 0;  ///< of the connection
    framed::FrameHeader request;
    Exposed exposed;
    Memory *memory = nullptr;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    std::uint64_t next = 0;  ///< bytes begun
    std::size_t in_flight = 0;
    Code result = Code::kOk;
    bool over() const { return in_flight == 0 && (result != Code::kOk || next == request.length); }
  };

  std::unique_ptr<framed::Connection> make_connection(std::uint64_t token) override {
    return std::make_unique<OfiConnection>(*this, token, *this);
  }
  OfiConnection *find_peer(std::uint64_t token) const { return static_cast<OfiConnection *>(find_connection(token)); }

  // Network
  Fabric &fabric() override { return *fabric_; }
  void post_receives() override;
  bool post_frame(OfiConnection &connection, const framed::FrameHeader &header,
                  std::span<const std::byte> body) override;
  bool serve(OfiConnection &connection, const framed::FrameHeader &request, const Exposed &exposed,
             Memory &memory) override;
  void end_served(const OfiConnection &connection) override;
  void end_reads(fi_addr_t peer, std::span<const std::byte> name) override;

  std::size_t poll() override;
  void give_back(void *slot) override;
  void go_on() override;
  void look_around() override;
  bool prepare_to_sleep() override;
  std::size_t stop_using(const framed::Memory &memory) override;
  void sever_users_of(const framed::Memory &memory) override;

  void on_completion(Work &work, std::size_t size_bytes, int error);
  void on_failed_chunk(Served &served, int error);
  void read_error();
  bool post_receive(Slot &slot);
  std::size_t wanted_receives() const;

  // serve.cpp
  void begin_chunks(Served &served);
  bool begin_chunk(Served &served, std::uint64_t length);
  void continue_served();
  void finish_served(std::list<Served>::iterator served);
  template <class Which> std::size_t refuse_served(Which which);
  template <class Which> void await_end_of(Which which);

  std::unique_ptr<Fabric> fabric_;
  std::shared_ptr<SlotPool> slots_;
  std::deque<Chunk> chunks_;
  std::vector<Chunk *> free_chunks_;
  std::size_t receives_posted_ = 0;
  std::list<Served> served_;
  Deadline watch_at_ = Deadline::now();  ///< when to look for connections whose frames may be lost
  bool stalled_ = false;                 ///< the provider took no more; try again soon
};

}  // namespace nnti::ofi
