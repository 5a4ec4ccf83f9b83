// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/socket.hpp"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace nessie::streams::sinks {

namespace {

constexpr int kBacklog = 8;
/// A connection whose other host has gone without a word is noticed by then.
constexpr int kIdleSeconds = 20, kProbeSeconds = 10, kProbes = 3;

struct FreeAddresses {
  void operator()(addrinfo *list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Error failed(Code code, std::string_view what, int cause) {
  return {code, fmt::format("{}: {}", what, std::strerror(cause)), Scope::kPeer, cause};
}

Result<Addresses> look_up(const HostPort &where, int flags) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  const char *host = where.host.empty() ? nullptr : where.host.c_str();
  if (const int problem = ::getaddrinfo(host, where.port.c_str(), &hints, &found); problem != 0)
    return Error{Code::kPeerLost, fmt::format("{}: {}", where.host, ::gai_strerror(problem)), Scope::kPeer};
  return Addresses(found);
}

/// kTimedOut: `events` have not come.
Status await(const Fd &socket, short events, Deadline deadline, const char *what) {
  for (;;) {
    pollfd one{socket.get(), events, 0};
    const int ready = ::poll(&one, 1, deadline.poll_timeout_ms());
    if (ready > 0) return {};
    if (ready == 0 && deadline.passed()) return Error{Code::kTimedOut, what, Scope::kPeer};
    if (ready < 0 && errno != EINTR) return failed(Code::kIo, what, errno);
  }
}

void set(const Fd &socket, int level, int option, int value) {
  (void)::setsockopt(socket.get(), level, option, &value, sizeof value);
}

Fd with_options(Fd socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  return socket;
}

Result<Fd> connect_to(const addrinfo &address, Deadline deadline) {
  Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed(Code::kIo, "no socket", errno);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS)
    return failed(Code::kPeerLost, "nobody listens", errno);
  if (auto ready = await(socket, POLLOUT, deadline, "nobody answers"); !ready.ok()) return ready.error();
  int problem = 0;
  socklen_t size = sizeof problem;
  (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
  if (problem != 0) return failed(Code::kPeerLost, "nobody listens", problem);
  return with_options(std::move(socket));
}

}  // namespace

Result<HostPort> HostPort::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  unsigned number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_port = !port.empty() && parsed.ec == std::errc() && parsed.ptr == port.data() + port.size();
  if (!is_port || number > 65535)
    return Error{Code::kInvalidArgument, fmt::format("'{}' is no HOST:PORT, as node7:4711", text)};
  return HostPort{std::string(host), std::string(port)};
}

Result<Fd> connect_to(const HostPort &where, Deadline deadline) {
  const auto addresses = look_up(where, 0);
  if (!addresses.ok()) return addresses.error();
  Result<Fd> last = Error{Code::kPeerLost, "it has no address", Scope::kPeer};
  for (const auto *each = addresses->get(); each != nullptr && !last.ok(); each = each->ai_next)
    last = connect_to(*each, deadline);
  if (last.ok()) return last;
  auto error = last.error();
  error.message = fmt::format("{}:{}: {}", where.host, where.port, error.message);
  return error;
}

Result<Fd> listen_at(const HostPort &where) {
  const auto addresses = look_up(where, AI_PASSIVE);
  if (!addresses.ok()) return Error{Code::kInvalidArgument, addresses.error().message};
  const auto &address = **addresses;
  Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (!socket || ::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return failed(Code::kIo, fmt::format("cannot listen at {}:{}", where.host, where.port), errno);
  return socket;
}

Result<Fd> accept_from(const Fd &listener, Deadline deadline) {
  for (;;) {
    if (auto ready = await(listener, POLLIN, deadline, "nobody connects"); !ready.ok()) return ready.error();
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) return with_options(std::move(socket));
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return failed(Code::kIo, "accept", errno);
  }
}

std::string address_of(const Fd &socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  auto *address = reinterpret_cast<sockaddr *>(&name);
  if (::getsockname(socket.get(), address, &size) != 0 ||
      ::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return name.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Status await_readable(const Fd &socket, Deadline deadline) {
  return await(socket, POLLIN, deadline, "the other side says nothing");
}

Status send_all(const Fd &socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (auto ready = await(socket, POLLOUT, deadline, "the other side takes nothing"); !ready.ok()) return ready;
    } else if (errno != EINTR) {
      return failed(Code::kPeerLost, "the connection is lost", errno);
    }
  }
  return {};
}

Status receive_all(const Fd &socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return Error{Code::kPeerLost, "the other side has closed the connection", Scope::kPeer};
    } else if (errno == EAGAIN) {
      if (auto ready = await(socket, POLLIN, deadline, "the other side says nothing"); !ready.ok()) return ready;
    } else if (errno != EINTR) {
      return failed(Code::kPeerLost, "the connection is lost", errno);
    }
  }
  return {};
}

}  // namespace nessie::streams::sinks
