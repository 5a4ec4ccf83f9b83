// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/transport.hpp"

#include <fmt/core.h>

#include <utility>

namespace nnti::tcp {
namespace {

std::string host_of(const nessie::Config &config) { return config.get_or("nnti.tcp.address", best_host()); }

}  // namespace

TransportInfo survey(const nessie::Config &config) {
  const auto host = host_of(config);
  if (host.empty()) return {"tcp", false, "no network interface is up; not even the loopback (ip link set lo up)"};
  return {"tcp",
          true,
          fmt::format("TCP at {}; bulk data goes in chunks, which the owner of a registered buffer checks", host),
          {{"messages in place", fmt::format("up to {} bytes", framed::kMaxMessageBytes)},
           {"credits", fmt::format("{} frames each way of a connection", framed::Connection::kCredits)}}};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto transport = std::make_unique<TcpTransport>(options);
  if (auto status = transport->start(options); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

Status TcpTransport::start(const TransportOptions &options) {
  if (auto status = configure(options.config); !status.ok()) return status.error();
  watch_library(streams_.wait_fd());
  if (!options.listen) return {};
  auto url = listen(options.config, host_of(options.config));
  if (!url.ok()) return url.error();
  set_url(*url);
  return {};
}

/// The stream of a connection that has been made, and over which nothing was said yet.
std::optional<Result<bootstrap::Hello>> TcpTransport::answer_again(const bootstrap::Hello &theirs) {
  const auto hello = decode_hello(theirs.blob);
  if (!hello.ok() || hello->kind != Hello::Kind::kStream) return std::nullopt;
  auto *connection = static_cast<TcpConnection *>(find_connection(hello->token));
  if (connection == nullptr || !connection->may_be_given_stream())
    return Error{Code::kBusy, "the connection that the stream is for is gone; connect again", nessie::Scope::kPeer};
  answering_stream_ = connection;
  return bootstrap::Hello{theirs.blob, {}};
}

bool TcpTransport::established_again(bootstrap::Established &established) {
  TcpConnection *connection = std::exchange(answering_stream_, nullptr);
  if (connection == nullptr) return false;
  connection->use_stream(established.socket.take());
  return true;
}

}  // namespace nnti::tcp
