// SPDX-License-Identifier: BSD-3-Clause
// Sockets for the bootstrap: UNIX sockets in the abstract namespace (nothing is left over in a file system), and TCP.
#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/bootstrap/congestion.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace nnti::bootstrap {
namespace {

constexpr int kBacklog = 1024;

Error failed(nessie::Code code, std::string_view what, int cause) {
  return {code, fmt::format("{}: {}", what, std::strerror(cause)), nessie::Scope::kOperation, cause};
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

Result<Address> unix_address(std::string_view name) {
  sockaddr_un address{};
  if (name.empty() || name.size() >= sizeof address.sun_path)
    return Error{nessie::Code::kInvalidArgument,
                 fmt::format("'{}' is too long for a socket's name", name.substr(0, 120))};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // sun_path[0] == 0: abstract
  Address result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

Result<Address> tcp_address(const std::string &host, std::uint16_t port) {
  Address result;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&result.storage, &four, result.size = sizeof four);
  } else if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    std::memcpy(&result.storage, &six, result.size = sizeof six);
  } else {
    return Error{nessie::Code::kInvalidArgument, fmt::format("'{}' is no numeric IP address", host)};
  }
  return result;
}

Result<nessie::Fd> open_socket(int family) {
  nessie::Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket && (errno == EMFILE || errno == ENFILE)) return no_descriptors();
  if (!socket) return failed(nessie::Code::kUnsupported, "cannot make a socket", errno);
  return socket;
}

void send_at_once(const nessie::Fd &socket) {
  int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// At this socket's port, too: a process that is started anew gets its port back, although connections of the last one
/// linger, or whoever looks for it has been given that port meanwhile.
void let_others_listen(const nessie::Fd &socket) {
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

Result<nessie::Fd> listen_at(const Address &address, std::string_view what) {
  auto socket = open_socket(address.storage.ss_family);
  if (!socket.ok()) return socket;
  let_others_listen(*socket);
  if (::bind(socket->get(), address.get(), address.size) != 0 || ::listen(socket->get(), kBacklog) != 0)
    return failed(errno == EADDRINUSE ? nessie::Code::kExists : nessie::Code::kUnsupported,
                  fmt::format("cannot listen at {}", what), errno);
  return socket;
}

}  // namespace

Result<nessie::Fd> listen_unix(std::string_view abstract_name) {
  auto address = unix_address(abstract_name);
  if (!address.ok()) return address.error();
  return listen_at(*address, abstract_name);
}

Result<nessie::Fd> connect_unix(std::string_view abstract_name) {
  auto address = unix_address(abstract_name);
  if (!address.ok()) return address.error();
  auto socket = open_socket(AF_UNIX);
  if (!socket.ok()) return socket;
  if (::connect(socket->get(), address->get(), address->size) == 0) return socket;
  if (errno == EAGAIN || errno == EINTR) return failed(nessie::Code::kBusy, "too many are connecting", errno);
  return failed(nessie::Code::kPeerLost, fmt::format("nobody listens at '{}'", abstract_name), errno);
}

Result<nessie::Fd> listen_tcp(const std::string &host, std::uint16_t port) {
  auto address = tcp_address(host, port);
  if (!address.ok()) return address.error();
  auto socket = listen_at(*address, fmt::format("{}:{}", host, port));
  if (socket.ok()) congestion::begin_without_pace(socket->get());  // and with it whatever it accepts
  return socket;
}

Result<nessie::Fd> connect_tcp(const std::string &host, std::uint16_t port) {
  auto address = tcp_address(host, port);
  if (!address.ok()) return address.error();
  auto socket = open_socket(address->storage.ss_family);
  if (!socket.ok()) return socket;
  let_others_listen(*socket);
  send_at_once(*socket);
  congestion::begin_without_pace(socket->get());
  if (::connect(socket->get(), address->get(), address->size) == 0 || errno == EINPROGRESS || errno == EINTR)
    return socket;
  return failed(nessie::Code::kPeerLost, fmt::format("cannot reach {}:{}", host, port), errno);
}

}  // namespace nnti::bootstrap
