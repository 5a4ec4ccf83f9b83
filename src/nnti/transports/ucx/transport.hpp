// SPDX-License-Identifier: BSD-3-Clause
// The network, through UCX.
//
// Design notes. Everything goes as active messages, to the worker of the side that must act: a peer that wants to get
// or put names the buffer by our own, unguessable key; we check key, bounds and rights where the memory is, and no peer
// is given UCX's own key to it. So a dead key is always refused, and a late access costs nobody's connection.
//
// One UCX worker serves all peers. What UCX reports is only noted while it makes progress (poll); it is worked off in
// progress().
#pragma once

#include "nnti/framed/transport.hpp"
#include "nnti/transports/ucx/connection.hpp"

#include <memory>

namespace nnti::ucx {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

class UcxTransport final : public framed::Transport, private WorkerEvents {
 public:
  explicit UcxTransport(const TransportOptions &options) : Transport("ucx", options) {}
  ~UcxTransport() override { leave_all(); }
  Status start(const TransportOptions &options);
  Deadline timer() const override;

 private:
  std::unique_ptr<framed::Connection> make_connection(std::uint64_t token) override {
    return std::make_unique<UcxConnection>(*this, token, network_);
  }
  std::size_t poll() override;
  bool prepare_to_sleep() override;

  void on_frame(std::span<const std::byte> bytes) override { note_frame(bytes); }
  bool on_chunk(std::span<const std::byte> header, const Payload &payload) override;
  void on_complete(Work &work, ucs_status_t status) override;
  void on_failure(std::uint64_t token, ucs_status_t status) override;
  UcxConnection *find_peer(std::uint64_t token) const { return static_cast<UcxConnection *>(find_connection(token)); }
  bool sleeps_without_ucx() const { return network_.worker->wait_fd() < 0 || connections().empty(); }

  Network network_;
};

}  // namespace nnti::ucx
