// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/transports/faulty/connection.hpp"

#include <map>

namespace nnti::faulty {

class FaultyTransport final : public Host, private TransportEvents {
 public:
  FaultyTransport(const TransportOptions &options, const Faults &faults);
  ~FaultyTransport() override;
  Status open_inner(const TransportOptions &options);

  std::string_view name() const override { return name_; }
  Reliability reliability() const override { return Reliability::kLossy; }
  std::string url() const override;
  Status can_reach(const nessie::Url &url) const override { return inner_->can_reach(inner_url(url)); }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override {
    return inner_ ? inner_->find_memory(buffer) : std::nullopt;
  }
  std::size_t progress() override;
  bool ready() override { return inner_ && inner_->ready(); }
  int wait_fd() const override { return inner_ ? inner_->wait_fd() : -1; }
  bool arm() override { return !inner_ || inner_->arm(); }
  void disarm(bool fd_ready) override;
  Deadline timer() const override;

  /// As if this process had been killed: nothing comes, goes, or is told from now on; peers see its connections end.
  void die();
  bool dead() const { return inner_ == nullptr; }
  std::uint64_t connections_made() const { return next_id_ - 1; }

  FaultyConnection &adopt(Connection &inner);

 private:
  nessie::Url inner_url(const nessie::Url &url) const;
  FaultyConnection *find(const Connection &inner) const;
  void reap();

  void accepted(Connection &inner) override;
  void message(Connection &inner, MessageKind kind, std::span<const std::byte> message) override;
  void lost(Connection &inner, Loss loss, const Error &error) override;

  const std::string name_;
  std::unique_ptr<Transport> inner_;
  std::map<std::uint64_t, std::unique_ptr<FaultyConnection>> connections_;  ///< by the inner one's PeerId
  std::uint64_t next_id_ = 1;
  int depth_ = 0;
};

}  // namespace nnti::faulty
