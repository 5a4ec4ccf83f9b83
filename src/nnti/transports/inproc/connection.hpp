// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/transports/inproc/port.hpp"

namespace nnti::inproc {

class InprocConnection final : public Connection {
 public:
  InprocConnection(Transport &transport, std::shared_ptr<Link> link, int side);
  ~InprocConnection() override;

  Transport &transport() override { return transport_; }
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return kMaxMessageBytes; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  std::optional<Result<std::uint64_t>> try_atomic(const RemoteBuffer &remote, std::uint64_t offset,
                                                  const AtomicOperation &operation) override;
  Status give_descriptor(std::uint64_t key, int descriptor) override;
  Result<int> take_descriptor(std::uint64_t key) override;
  bool can_give_descriptors() const override { return true; }
  Result<pid_t> process() const override;
  void close() override;

  /// Gives one credit back to the peer.
  void return_credit();
  /// The peer has ended the connection.
  void end() { open_ = false; }
  bool open() const { return open_; }

 private:
  int other() const { return 1 - side_; }
  template <class Copy>
  Status transfer(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes, Rights needed, Copy copy);

  Transport &transport_;
  std::shared_ptr<Link> link_;
  int side_;
  bool open_ = true;
};

}  // namespace nnti::inproc
