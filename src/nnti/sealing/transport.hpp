// SPDX-License-Identifier: BSD-3-Clause
// Sealing: what leaves through the transport below is encrypted and authenticated under keys that come from the job's
// secret. The endpoint puts it around transports that cross hosts, if nnti.encrypt asks for it; name and URL stay the
// other's. README.md has the protocol.
#pragma once

#include "nnti/sealing/connection.hpp"

#include <functional>
#include <unordered_map>

namespace nnti::sealing {

/// Opens the transport below with the options it is given.
using Opener = std::function<Result<std::unique_ptr<Transport>>(const TransportOptions &)>;

Result<std::unique_ptr<Transport>> open(const TransportOptions &options, const Opener &open_inner);

class SealedTransport final : public Transport, private TransportEvents {
 public:
  explicit SealedTransport(const TransportOptions &options)
      : credential_(options.credential), events_(options.events) {}
  ~SealedTransport() override;
  Status open_inner(const TransportOptions &options, const Opener &open);

  std::string_view name() const override { return inner_->name(); }
  Reliability reliability() const override { return inner_->reliability(); }
  std::string url() const override { return inner_->url(); }
  Status can_reach(const nessie::Url &url) const override { return inner_->can_reach(url); }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override {
    return inner_->find_memory(buffer);
  }
  std::size_t progress() override;
  bool ready() override { return inner_->ready(); }
  int wait_fd() const override { return inner_->wait_fd(); }
  bool arm() override { return inner_->arm(); }
  void disarm(bool fd_ready) override { inner_->disarm(fd_ready); }
  Deadline timer() const override { return inner_->timer(); }

  // --- for connections -----------------------------------------------------------------------------------------------
  struct Refusal {
    Loss loss;
    Error error;
  };
  Transport &inner() { return *inner_; }
  const nessie::Credential &credential() const { return credential_; }
  TransportEvents &events() { return events_; }
  SealedConnection &adopt(Connection &inner, bool we_connected);
  /// Null if it has ended.
  SealedConnection *find(std::uint64_t id) const;
  /// Why a connection ended that nobody above knows yet; for those who are making it.
  void refused(SealedConnection &connection, Loss loss, const Error &error);
  std::optional<Refusal> why_refused(std::uint64_t id);
  void reap_later() { any_to_reap_ = true; }
  std::vector<std::byte> take_scratch() { return std::exchange(scratch_, {}); }
  void give_scratch(std::vector<std::byte> scratch) { scratch_ = std::move(scratch); }

 private:
  void accepted(Connection &inner) override { adopt(inner, false); }
  void message(Connection &inner, MessageKind kind, std::span<const std::byte> message) override;
  void lost(Connection &inner, Loss loss, const Error &error) override;
  void reap();

  const nessie::Credential &credential_;
  TransportEvents &events_;
  std::unordered_map<std::uint64_t, std::unique_ptr<SealedConnection>> connections_;  ///< by the inner one's PeerId
  std::unordered_map<std::uint64_t, Refusal> refusals_;
  std::uint64_t next_id_ = 1;
  std::vector<std::byte> scratch_;
  int depth_ = 0;
  bool any_to_reap_ = false;
  std::unique_ptr<Transport> inner_;  ///< last: closed first, while what it calls back into still lives
};

}  // namespace nnti::sealing
