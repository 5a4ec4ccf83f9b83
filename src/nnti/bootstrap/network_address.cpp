// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/bootstrap/network_address.hpp"

#include <base/host.hpp>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

namespace nnti {

nessie::Result<HostPort> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  HostPort result;
  if (colon != std::string_view::npos) {
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    result.host = host;
    const auto digits = text.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.port);
    if (error == std::errc() && end == digits.data() + digits.size() && result.port != 0 && !host.empty())
      return result;
  }
  return nessie::Error{nessie::Code::kInvalidArgument, fmt::format("'{}' is no host:port", text)};
}

std::string join_host_port(const std::string &host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

bool is_loopback(std::string_view host) { return host.starts_with("127.") || host == "::1"; }

std::string numeric_host(const sockaddr *address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const auto &six = reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) inet_ntop(AF_INET6, &six, text, sizeof text);
  }
  return text;
}

HostPort host_port_of(const sockaddr_storage &address) {
  const auto port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6 &>(address).sin6_port
                                                  : reinterpret_cast<const sockaddr_in &>(address).sin_port;
  return {numeric_host(reinterpret_cast<const sockaddr *>(&address)), ntohs(port)};
}

int rank_of_host(std::string_view host) {
  if (host.empty()) return 0;
  const bool four = host.find(':') == std::string_view::npos;
  return (is_loopback(host) ? 1 : 3) + (four ? 1 : 0);
}

namespace {

/// Of each address of an interface that others can reach: look(its text, whether it is up, and connected).
template <class Look> void for_each_host(const Look &look) {
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  for (const ifaddrs *entry = list; entry != nullptr; entry = entry->ifa_next)
    look(numeric_host(entry->ifa_addr), (entry->ifa_flags & IFF_UP) && (entry->ifa_flags & IFF_RUNNING));
  ::freeifaddrs(list);
}

}  // namespace

std::string best_host() {
  std::string best;
  for_each_host([&](const std::string &host, bool is_up) {
    if (is_up && rank_of_host(host) > rank_of_host(best)) best = host;
  });
  return best;
}

bool is_down(std::string_view host) {
  bool found = false;
  for_each_host([&](const std::string &each, bool is_up) { found = found || (each == host && !is_up); });
  return found;
}

std::string this_network_node() {
  const auto boot = nessie::boot_id();
  struct stat space {};
  ::stat("/proc/self/ns/net", &space);
  return fmt::format("{}-{:x}", boot.empty() ? "?" : boot.substr(0, 8), space.st_ino);
}

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size) != 0) return 0;
  return host_port_of(address).port;
}

nessie::Result<KeepAlive> KeepAlive::load(const nessie::Config &config) {
  KeepAlive keep_alive;
  auto heartbeat = config.get_duration("nnti.heartbeat", keep_alive.heartbeat);
  if (!heartbeat.ok()) return heartbeat.error();
  auto timeout = config.get_duration("nnti.peer_timeout", keep_alive.timeout);
  if (!timeout.ok()) return timeout.error();
  return KeepAlive{*heartbeat, *timeout};
}

/// What was said in the handshake and not acknowledged counts as silence, too.
void KeepAlive::apply(int socket) const {
  if (heartbeat.count() == 0 || timeout.count() == 0) return;
  constexpr std::int64_t kLongestSeconds = 32'767, kMostProbes = 127;
  const auto seconds = std::clamp<std::int64_t>((heartbeat.count() + 999) / 1000, 1, kLongestSeconds);
  const auto probes = std::clamp<std::int64_t>(timeout.count() / 1000 / seconds - 1, 1, kMostProbes);
  const int on = 1, interval_s = static_cast<int>(seconds), count = static_cast<int>(probes);
  const auto timeout_ms = static_cast<unsigned>(1000 * seconds * (probes + 1));
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &interval_s, sizeof interval_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

}  // namespace nnti
