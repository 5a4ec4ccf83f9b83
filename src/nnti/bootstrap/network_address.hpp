// SPDX-License-Identifier: BSD-3-Clause
// Addresses of the bootstrap over TCP, for the transports that reach other nodes (ofi, ucx, tcp).
#pragma once

#include <base/config.hpp>

#include <chrono>

#include <nessie/result.hpp>

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace nnti {

struct HostPort {
  std::string host;  ///< numeric; without brackets
  std::uint16_t port = 0;
};

/// "10.0.0.1:4711", "[fd00::1]:4711". kInvalidArgument.
nessie::Result<HostPort> parse_host_port(std::string_view text);
std::string join_host_port(const std::string &host, std::uint16_t port);

bool is_loopback(std::string_view host);
/// Text of an IP address; empty if it is none, or only valid on one link.
std::string numeric_host(const sockaddr *address);
/// Of an IP address with a port; the host is as numeric_host() says.
HostPort host_port_of(const sockaddr_storage &address);
/// How well others reach an address: the loopback last, IPv4 before IPv6; 0: not at all.
int rank_of_host(std::string_view host);
/// The best address of the interfaces that are up and connected; empty if there is none.
std::string best_host();
/// An interface has that address, and is down, or not connected.
bool is_down(std::string_view host);

/// Names this network namespace of this machine, so that a loopback address of another is not mistaken for one here.
std::string this_network_node();

/// The port that a bound socket has.
std::uint16_t port_of(int socket);
/// How the kernel watches the peer's node (TCP_KEEPIDLE and its kin): it asks after `heartbeat` of silence, and again
/// every `heartbeat`; after `timeout` without an answer the link is broken. Zero: it does not.
struct KeepAlive {
  std::chrono::milliseconds heartbeat{1'000}, timeout{30'000};

  static nessie::Result<KeepAlive> load(const nessie::Config &config);
  void apply(int socket) const;
};

}  // namespace nnti
