// SPDX-License-Identifier: BSD-3-Clause
// What the transfer service's tests share: a service with small pieces, so that small arrays have many.
#pragma once

#include <services/transfer/server/server.hpp>

#include <nssi/testing/testing.hpp>
#include <service/host.hpp>

namespace transfer::testing {

inline constexpr std::size_t kPieceBytes = 4096;
inline constexpr std::uint32_t kPiece = kPieceBytes / sizeof(data_t);

inline data_array_t array_of(std::uint32_t len, std::int32_t seed) {
  data_array_t array(len);
  fill(array, seed);
  return array;
}

inline ServerOptions small_pieces(unsigned threads) {
  ServerOptions options;
  options.piece_bytes = kPieceBytes;
  options.most_lanes = 2;
  options.threads = threads;
  options.most_encoded_bytes = 8 << 20;
  return options;
}

/// A service on a thread of its own.
class Host {
 public:
  explicit Host(const std::string &transport, unsigned threads = 1)
      : host_(*nessie::service::Host::open({.runtime = nssi::testing::options_for(transport, true)})) {
    const auto started = host_->start({.name = "transfer"}, [&](const nessie::ProviderContext &context) {
      return Server::start(context, small_pieces(threads));
    });
    if (!started.ok()) throw std::runtime_error("the service was not added");
    thread_ = std::thread([this] { host_->run(); });
  }
  ~Host() {
    host_->runtime().stop();
    thread_.join();
  }
  const std::string &url() const { return host_->runtime().url(); }

 private:
  std::unique_ptr<nessie::service::Host> host_;
  std::thread thread_;
};

}  // namespace transfer::testing
