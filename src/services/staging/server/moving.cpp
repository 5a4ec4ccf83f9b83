// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/moving.hpp>

#include <base/log.hpp>

#include <algorithm>

namespace staging {

void Server::watch_moves() {
  while (!moves_.empty() && !stopped_) {
    runtime_.sleep_until(nessie::Deadline::in(options_.client_timeout / 4));
    for (auto *move : moves_)
      if (is_stopped(move->client())) move->extend();
    const auto late = std::ranges::find_if(moves_, &Move::late);
    if (late == moves_.end()) continue;
    const auto client = (*late)->client();
    nessie::log::warning("a process of the program moved no data for {} ms and is given up",
                         options_.client_timeout.count());
    runtime_.disconnect(client);
    peer_lost(client);
  }
  watching_moves_ = false;
}

/// It moves data, and has not for a while: others shall not wait for it.
bool Server::is_stuck(nssi::PeerId client) const {
  return std::ranges::any_of(moves_, [=](const Move *move) { return move->slow() && move->client() == client; });
}

}  // namespace staging
