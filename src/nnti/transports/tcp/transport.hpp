// SPDX-License-Identifier: BSD-3-Clause
// The network, through TCP: for where there is no other that a network library could use.
//
// Design notes. README.md says what makes it fast. Streams are read and written by whoever polls; what they bring is
// only noted (poll), and worked off in progress().
#pragma once

#include "nnti/framed/transport.hpp"
#include "nnti/transports/tcp/connection.hpp"

#include <memory>

namespace nnti::tcp {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

class TcpTransport final : public framed::Transport, public Inbox {
 public:
  explicit TcpTransport(const TransportOptions &options) : Transport("tcp", options), streams_(options.poller) {}
  ~TcpTransport() override { leave_all(); }
  Status start(const TransportOptions &options);

 private:
  std::unique_ptr<framed::Connection> make_connection(std::uint64_t token) override {
    return std::make_unique<TcpConnection>(*this, token, streams_, *this);
  }
  std::size_t poll() override { return streams_.poll(); }
  bool prepare_to_sleep() override {
    streams_.arm();
    return true;
  }
  std::optional<Result<bootstrap::Hello>> answer_again(const bootstrap::Hello &theirs) override;
  bool established_again(bootstrap::Established &established) override;
  void note(std::span<const std::byte> frame) override { note_frame(frame); }

  Streams streams_;
  TcpConnection *answering_stream_ = nullptr;  ///< between answer_again() and established_again()
};

}  // namespace nnti::tcp
