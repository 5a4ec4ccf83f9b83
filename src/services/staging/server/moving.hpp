// SPDX-License-Identifier: BSD-3-Clause
// Data on their way from and to a client.
#pragma once

#include <services/staging/server/server.hpp>

namespace staging {

/// Data on their way, for the watch.
class Server::Move {
 public:
  Move(Server &server, nssi::PeerId client)
      : server_(server),
        client_(client),
        slow_(nessie::Deadline::in(kSlow)),
        deadline_(nessie::Deadline::in(server.options_.client_timeout)),
        extended_(deadline_) {
    server_.moves_.push_back(this);
    if (std::exchange(server_.watching_moves_, true)) return;
    server_.runtime_.spawn([&server] { server.watch_moves(); });
  }
  ~Move() { std::erase(server_.moves_, this); }
  Move(const Move &) = delete;
  bool slow() const { return slow_.passed(); }
  bool late() const { return (server_.finishing_ ? deadline_ : extended_).passed(); }
  /// Its client is stopped now: when that goes on it has time again, unless everything is to end.
  void extend() { extended_ = nessie::Deadline::in(server_.options_.client_timeout); }
  nssi::PeerId client() const { return client_; }

 private:
  static constexpr std::chrono::seconds kSlow{1};
  Server &server_;
  const nssi::PeerId client_;
  const nessie::Deadline slow_, deadline_;
  nessie::Deadline extended_;
};

}  // namespace staging
