// SPDX-License-Identifier: BSD-3-Clause
// Sealing: what leaves through the transport below is encrypted and authenticated under keys that come from the job's
// secret. The endpoint puts it around transports that cross hosts, if nnti.encrypt asks for it; name and URL stay the
// other's. README.md has the protocol.
#pragma once

#include "nnti/sealing/connection.hpp"

#include <unordered_map>

namespace nnti::sealing {

Result<std::unique_ptr<Transport>> open(const TransportOptions &options, const Opener &open_inner);

class SealedTransport final : public Host, private TransportEvents {
 public:
  explicit SealedTransport(const TransportOptions &options) : Host(options) {}
  ~SealedTransport() override;
  Status open_inner(const TransportOptions &options, const Opener &open);

  Reliability reliability() const override { return inner_->reliability(); }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::size_t progress() override;

  // --- for who connects ----------------------------------------------------------------------------------------------
  SealedConnection &adopt(Connection &inner, bool we_connected);
  /// Null if it has ended.
  SealedConnection *find(std::uint64_t id) const;
  /// Once: why it ended before anybody above knew it.
  std::optional<Refusal> why_refused(std::uint64_t id);

 private:
  void accepted(Connection &inner) override { adopt(inner, false); }
  void message(Connection &inner, MessageKind kind, std::span<const std::byte> message) override;
  void lost(Connection &inner, Loss loss, const Error &error) override;
  void reap();

  std::unordered_map<std::uint64_t, std::unique_ptr<SealedConnection>> connections_;  ///< by the inner one's PeerId
  std::uint64_t next_id_ = 1;
  int depth_ = 0;
};

}  // namespace nnti::sealing
