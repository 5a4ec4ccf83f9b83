// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/observe/page_server.hpp>

#include <base/clock.hpp>

#include <fmt/format.h>

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

namespace nssi {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;

namespace {

constexpr std::size_t kMostConnections = 16, kMostRequestBytes = 8192;
constexpr std::chrono::seconds kLongestConnection{5};
constexpr int kBacklog = 16, kPauseWithoutDescriptors_ms = 100;

struct HostPort {
  std::string host, port;
};

std::optional<HostPort> split(std::string_view address) {
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size()) return std::nullopt;
  auto host = address.substr(0, colon);
  const auto port = address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return HostPort{std::string(host), std::string(port)};
}

Error cannot_listen(std::string_view address, std::string_view why, int cause) {
  return {Code::kIo,
          fmt::format("nobody can listen at {}: {}; choose another address, or port 0, which is any that is free",
                      address, why),
          nessie::Scope::kOperation, cause};
}

Result<int> listen_at(const addrinfo &where, std::string_view address) {
  const int fd = ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol);
  if (fd < 0) return cannot_listen(address, std::strerror(errno), errno);
  const int yes = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd, where.ai_addr, where.ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int cause = errno;
  ::close(fd);
  return cannot_listen(address, std::strerror(cause), cause);
}

Result<int> listen_at(const HostPort &where, std::string_view address) {
  unsigned port = 0;
  const auto end = where.port.data() + where.port.size();
  const auto parsed = std::from_chars(where.port.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port > 65535)
    return cannot_listen(address, fmt::format("{} is no port, which is a number up to 65535", where.port), 0);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const char *host = where.host.empty() ? nullptr : where.host.c_str();
  if (const int problem = ::getaddrinfo(host, where.port.c_str(), &hints, &found); problem != 0)
    return cannot_listen(address, ::gai_strerror(problem), 0);
  auto fd = listen_at(*found, address);
  ::freeaddrinfo(found);
  return fd;
}

std::string name_of(int listener) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  auto *address = reinterpret_cast<sockaddr *>(&name);
  if (::getsockname(listener, address, &size) != 0 ||
      ::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return name.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string response(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     type, body.size(), body);
}

}  // namespace

/// First its request comes, then its answer goes.
struct PageServer::Connection {
  explicit Connection(int socket) : fd(socket) {}
  ~Connection() { ::close(fd); }
  Connection(const Connection &) = delete;

  bool is_answering() const { return !out.empty(); }
  /// False: it is over.
  bool receive() {
    char buffer[2048];
    const auto got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    in.append(buffer, static_cast<std::size_t>(got));
    return in.size() <= kMostRequestBytes;
  }
  bool has_request() const { return in.find("\r\n\r\n") != std::string::npos; }
  bool send() {
    const auto rest = std::string_view(out).substr(sent);
    const auto put = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (put < 0) return errno == EAGAIN || errno == EINTR;
    sent += static_cast<std::size_t>(put);
    if (sent < out.size()) return true;
    (void)::shutdown(fd, SHUT_WR);
    return false;
  }

  const int fd;
  const Deadline until = Deadline::in(kLongestConnection);
  std::string in, out;
  std::size_t sent = 0;
};

Result<std::unique_ptr<PageServer>> PageServer::open(std::string_view address, Options options) {
  const auto where = split(address);
  if (!where)
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is no address to listen at, such as 127.0.0.1:9464", address.substr(0, 80))};
  auto listener = listen_at(*where, address);
  if (!listener.ok()) return listener.error();
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    ::close(*listener);
    return Error{Code::kIo, "no descriptor is left for the page's thread", nessie::Scope::kOperation, errno};
  }
  std::unique_ptr<PageServer> server(new PageServer(*listener, wake, name_of(*listener), std::move(options)));
  try {
    server->thread_ = std::thread([server = server.get()] { server->serve(); });
  } catch (const std::system_error &e) {
    return Error{Code::kNoMemory, fmt::format("no thread could be made for the page at {}: {}", address, e.what())};
  }
  return server;
}

PageServer::PageServer(int listener, int wake, std::string address, Options options)
    : listener_(listener), wake_(wake), address_(std::move(address)), options_(std::move(options)) {}

PageServer::~PageServer() {
  (void)::eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  ::close(listener_);
  ::close(wake_);
}

std::string PageServer::answer(std::string_view request) const {
  const auto line = request.substr(0, request.find("\r\n"));
  if (!line.starts_with("GET ")) return response("405 Method Not Allowed", "text/plain", "only GET is served here\n");
  const auto target = line.substr(4, line.find(' ', 4) - 4);
  if (target.substr(0, target.find('?')) != options_.path)
    return response("404 Not Found", "text/plain", fmt::format("there is nothing here but {}\n", options_.path));
  return response("200 OK", options_.content_type, options_.make());
}

void PageServer::serve() {
  std::vector<std::unique_ptr<Connection>> all;
  const auto take_turn = [this](Connection &each) {
    if (each.is_answering()) return each.send();
    if (!each.receive()) return false;
    if (!each.has_request()) return true;
    each.out = answer(each.in);
    return each.send();
  };
  for (std::vector<pollfd> fds;;) {
    const bool has_room = all.size() < kMostConnections;
    fds.assign({{wake_, POLLIN, 0}, {listener_, static_cast<short>(has_room ? POLLIN : 0), 0}});
    auto until = Deadline::never();
    for (const auto &each : all) {
      fds.push_back({each->fd, static_cast<short>(each->is_answering() ? POLLOUT : POLLIN), 0});
      until = until.earlier(each->until);
    }
    if (::poll(fds.data(), fds.size(), until.poll_timeout_ms()) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    for (std::size_t i = all.size(); i-- > 0;)
      if ((fds[i + 2].revents != 0 && !take_turn(*all[i])) || all[i]->until.passed())
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    if ((fds[1].revents & POLLIN) == 0) continue;
    if (const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); fd >= 0)
      all.push_back(std::make_unique<Connection>(fd));
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      (void)::poll(fds.data(), 1, kPauseWithoutDescriptors_ms);  // whoever knocks goes on knocking
  }
}

}  // namespace nssi
