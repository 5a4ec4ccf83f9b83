// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/bootstrap/congestion.hpp"

#include "base/fd.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string_view>

namespace nnti::congestion {
namespace {

constexpr std::string_view kWithoutPace = "reno";  // every kernel has it, and lets everybody choose it

void set(int socket, std::string_view name) {
  ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size()));
}

/// A control's name, as the kernel returns it.
class Control {
 public:
  explicit Control(int socket) {
    auto size = static_cast<socklen_t>(name_.size() - 1);
    if (::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name_.data(), &size) != 0) name_[0] = '\0';
  }
  std::string_view name() const { return name_.data(); }

 private:
  std::array<char, 64> name_{};
};

bool on_one_host(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (::getsockname(socket, reinterpret_cast<sockaddr *>(&own), &own_size) != 0) return false;
  if (::getpeername(socket, reinterpret_cast<sockaddr *>(&peer), &peer_size) != 0) return false;
  if (own.ss_family != peer.ss_family) return false;
  if (own.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in &>(own).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in &>(peer).sin_addr.s_addr;
  return own.ss_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6 &>(own).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6 &>(peer).sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

void begin_without_pace(int socket) { set(socket, kWithoutPace); }

void choose(int socket) {
  if (Control(socket).name() != kWithoutPace || on_one_host(socket)) return;
  const nessie::Fd untouched(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (untouched) set(socket, Control(untouched.get()).name());
}

}  // namespace nnti::congestion
