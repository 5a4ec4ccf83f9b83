// SPDX-License-Identifier: BSD-3-Clause
// What data pass through on their way from and to a client.
#pragma once

#include <services/staging/server/server.hpp>

namespace staging {

/// One of the few buffers that data pass through.
class Server::Bounce {
 public:
  explicit Bounce(Server &server) : server_(server) {
    while (server_.bounces_.empty()) (void)server_.bounce_free_.wait();
    memory_ = std::move(server_.bounces_.back());
    server_.bounces_.pop_back();
  }
  ~Bounce() {
    server_.bounces_.push_back(std::move(memory_));
    server_.bounce_free_.notify_all();
  }
  Bounce(const Bounce &) = delete;
  std::byte *data() const { return memory_.get(); }

 private:
  Server &server_;
  std::unique_ptr<std::byte[]> memory_;
};

/// Data on their way, for the watch.
class Server::Move {
 public:
  Move(Server &server, nssi::PeerId client)
      : server_(server), client_(client), deadline_(nessie::Deadline::in(server.options_.client_timeout)) {
    server_.moves_.push_back(this);
    if (std::exchange(server_.watching_moves_, true)) return;
    server_.runtime_.spawn([&server] { server.watch_moves(); });
  }
  ~Move() { std::erase(server_.moves_, this); }
  Move(const Move &) = delete;
  bool late() const { return deadline_.passed(); }
  nssi::PeerId client() const { return client_; }

 private:
  Server &server_;
  const nssi::PeerId client_;
  const nessie::Deadline deadline_;
};

}  // namespace staging
