// SPDX-License-Identifier: BSD-3-Clause
// What transports that stand around another one share: the channel, the seal, the faulty network.
#pragma once

#include "nnti/transport/transport.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace nnti {

/// Opens the transport inside with the options that it is given.
using Opener = std::function<Result<std::unique_ptr<Transport>>(const TransportOptions &)>;

/// Whatever a transport around another one does not do otherwise, that one does.
class DecoratedTransport : public Transport {
 public:
  Transport &inner() { return *inner_; }

  std::string_view name() const override { return inner_->name(); }
  std::string url() const override { return inner_->url(); }
  Status can_reach(const nessie::Url &url) const override { return inner_->can_reach(url); }
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override {
    return inner_->find_memory(buffer);
  }
  bool ready() override { return inner_->ready(); }
  int wait_fd() const override { return inner_->wait_fd(); }
  bool arm() override { return inner_->arm(); }
  void disarm(bool fd_ready) override { inner_->disarm(fd_ready); }
  Deadline timer() const override { return inner_->timer(); }

 protected:
  std::unique_ptr<Transport> inner_;  ///< to be closed in the destructor, while what it calls back into still lives
};

/// A registration with the transport inside. `kInnerOf` tells the connection there of one of ours; null: none now.
template <auto kInnerOf> class DecoratedMemory final : public TransportMemory {
 public:
  explicit DecoratedMemory(std::unique_ptr<TransportMemory> inner) : inner_(std::move(inner)) {}
  Result<RemoteBuffer> describe_for(Connection &peer) override {
    Connection *connection = kInnerOf(peer);
    return connection != nullptr ? inner_->describe_for(*connection) : describe();
  }
  RemoteBuffer describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<TransportMemory> inner_;
};

template <auto kInnerOf>
Result<std::unique_ptr<TransportMemory>> register_inside(Transport &inner, const MemoryRegion &region) {
  auto memory = inner.register_memory(region);
  if (!memory.ok()) return memory.error();
  return std::unique_ptr<TransportMemory>(std::make_unique<DecoratedMemory<kInnerOf>>(std::move(*memory)));
}

}  // namespace nnti
