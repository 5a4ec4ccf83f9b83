// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/transports/inproc/connection.hpp"

#include <list>

namespace nnti::inproc {

class InprocTransport final : public Transport {
 public:
  InprocTransport(const TransportOptions &options, std::string name);
  ~InprocTransport() override;

  std::string_view name() const override { return "inproc"; }
  std::string url() const override { return name_.empty() ? "" : "inproc://" + name_; }
  Status can_reach(const nessie::Url &url) const override;
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override;
  std::size_t progress() override;
  bool ready() override { return !early_.empty() || port_->has_items(); }
  int wait_fd() const override { return port_->wait_fd(); }
  bool arm() override { return early_.empty() && port_->arm(); }
  void disarm(bool fd_ready) override { port_->disarm(fd_ready); }

  Connection *add_connection(std::shared_ptr<Link> link, int side);
  /// Whoever connects has learnt that it is: what has come before that is delivered from now on.
  Connection *connected(const std::shared_ptr<Link> &link);

 private:
  bool take(Item &item);
  void deliver(Item &item);
  void on_connect(const std::shared_ptr<Link> &link);
  void reap();

  const nessie::Credential &credential_;
  TransportEvents &events_;
  std::string name_;
  std::shared_ptr<Port> port_;
  std::deque<Item> early_;  ///< to be delivered before what waits at the port
  std::list<std::unique_ptr<InprocConnection>> connections_;
  int depth_ = 0;
};

}  // namespace nnti::inproc
