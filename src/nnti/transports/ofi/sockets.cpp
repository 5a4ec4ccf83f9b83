// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/sockets.hpp"

#include "nnti/bootstrap/network_address.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace nnti::ofi {
namespace {

HostPort host_port_in(std::span<const std::byte> name) {
  sockaddr_storage address{};
  std::ranges::copy(name.first(std::min(name.size(), sizeof address)), reinterpret_cast<std::byte *>(&address));
  return host_port_of(address);
}

/// One end of a connected socket; nothing if it is none.
std::optional<HostPort> end_of(int socket, decltype(&::getpeername) ask) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (ask(socket, reinterpret_cast<sockaddr *>(&address), &size) != 0) return std::nullopt;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return std::nullopt;
  return host_port_of(address);
}

}  // namespace

void shut_sockets_between(std::span<const std::byte> ours, std::span<const std::byte> theirs) {
  const auto here = host_port_in(ours), there = host_port_in(theirs);
  if (there.host.empty()) return;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const int socket = std::atoi(entry->path().filename().c_str());
    const auto near = end_of(socket, ::getsockname), far = end_of(socket, ::getpeername);
    if (!near || !far || far->host != there.host) continue;
    if (far->port == there.port || near->port == here.port) ::shutdown(socket, SHUT_RDWR);
  }
}

}  // namespace nnti::ofi
