// SPDX-License-Identifier: BSD-3-Clause
#include "sockets.hpp"

#include "child.hpp"
#include "machine.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <new>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

bool tcp_pair(int pair[2]) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto *name = reinterpret_cast<sockaddr *>(&address);
  bool listens =
      bind(listener, name, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, name, &length) == 0;
  pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool connected = listens && connect(pair[0], name, length) == 0;
  pair[1] = connected ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
  close(listener);
  int on = 1;
  for (int i : {0, 1}) setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return pair[1] >= 0;
}

bool socket_pair(SocketKind kind, int pair[2]) {
  if (kind == SocketKind::kTcpLoopback) return tcp_pair(pair);
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
}

/// One end of a connection, moving whole messages. False: the other end is gone.
class Stream {
 public:
  Stream(int socket, SocketWait wait)
      : socket_(socket), flags_(wait == SocketWait::kPolls ? MSG_DONTWAIT : 0), yields_(usable_cores().size() < 2) {}
  ~Stream() { close(socket_); }
  Stream(const Stream &) = delete;

  bool write(std::span<const std::byte> bytes) {
    return move(bytes, [&](auto left) { return ::send(socket_, left.data(), left.size(), flags_ | MSG_NOSIGNAL); });
  }
  bool read(std::span<std::byte> bytes) {
    return move(bytes, [&](auto left) { return ::recv(socket_, left.data(), left.size(), flags_); });
  }

 private:
  template <class Bytes, class Some> bool move(Bytes left, Some &&some) {
    while (!left.empty()) {
      auto n = some(left);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
      if (n > 0) left = left.subspan(static_cast<std::size_t>(n));
      if (n < 0 && yields_) sched_yield();
    }
    return true;
  }

  int socket_, flags_;
  bool yields_;
};

/// Messages of `size` there, and of `back` back.
struct Exchange {
  std::uint64_t size, back;
  int calls;  ///< polling: in a batch; sleeping: in all
};

int answer(int socket, SocketWait wait, const std::vector<Exchange> &exchanges) {
  Pin pin(1);
  Stream stream(socket, wait);
  for (const auto &exchange : exchanges) {
    PageAligned<std::byte> buffer(exchange.size);
    do
      if (!stream.read(buffer) || !stream.write(std::span(buffer).first(exchange.back))) return 1;
    while (buffer.back() != std::byte{kLast});
  }
  return 0;
}

Result<FiguresBySize> exchange_all(SocketKind kind, SocketWait wait, const std::vector<Exchange> &exchanges) {
  int pair[2];
  if (!socket_pair(kind, pair)) return Error{Code::kIo, "no sockets for the baseline", {}, errno};
  FiguresBySize times;
  bool alive = true;
  Partner partner([&](int, int) { return close(pair[0]), answer(pair[1], wait, exchanges); });
  close(pair[1]);
  Pin pin(0);
  Stream stream(pair[0], wait);
  for (auto [size, back, calls] : exchanges) {
    PageAligned<std::byte> buffer(size);
    auto reply = std::span(buffer).first(back);
    auto once = [&](bool last) {
      buffer.back() = static_cast<std::byte>(last ? kLast : kAnother);
      alive = alive && stream.write(buffer) && stream.read(reply);
    };
    times[size] = wait == SocketWait::kPolls ? typical_us(calls, once) : paced_us(calls, once);
  }
  if (!alive) return Error{Code::kPeerLost, "the partner of the socket baseline ended early"};
  return times;
}

}  // namespace

Result<FiguresBySize> socket_round_trips(SocketKind kind, SocketWait wait, const std::vector<std::uint64_t> &sizes) {
  std::vector<Exchange> exchanges;
  int calls = wait == SocketWait::kPolls ? kSocketRoundTrips : kPacedCalls;
  for (auto size : sizes) exchanges.push_back({size, size, calls});
  return exchange_all(kind, wait, exchanges);
}

Result<FiguresBySize> socket_transfers(SocketKind kind, const std::vector<std::uint64_t> &sizes) {
  std::vector<Exchange> exchanges;
  for (auto size : sizes) exchanges.push_back({size, 1, transfers_per_batch(size)});
  return exchange_all(kind, SocketWait::kPolls, exchanges);
}

// --- waking up -------------------------------------------------------------------------------------------------------

namespace {

/// Lets a sleep that nobody ends fail after a minute, without a cost to those that are ended.
class SleepLimit {
 public:
  SleepLimit() {
    struct sigaction interrupt {};
    interrupt.sa_handler = [](int) {};
    sigaction(SIGALRM, &interrupt, &before_);
    alarm(60);
  }
  ~SleepLimit() {
    alarm(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  SleepLimit(const SleepLimit &) = delete;

 private:
  struct sigaction before_ {};
};

/// Two bells, one for each side, in memory that both share.
struct Bells {
  std::atomic<std::uint32_t> rung[2];
  int descriptors[2];
};

class Bell {
 public:
  Bell(Bells &bells, WakeUp how, int mine) : bells_(bells), how_(how), mine_(mine) {}

  bool ring_other() {
    int other = 1 - mine_;
    std::uint64_t one = 1;
    if (how_ == WakeUp::kEventfd) return ::write(bells_.descriptors[other], &one, sizeof one) == sizeof one;
    bells_.rung[other].fetch_add(1);
    return syscall(SYS_futex, &bells_.rung[other], FUTEX_WAKE, 1, nullptr, nullptr, 0) >= 0;
  }

  /// Sleeps until our own was rung. False: SleepLimit interrupted it.
  bool sleep() {
    std::uint64_t count;
    if (how_ == WakeUp::kEventfd) return ::read(bells_.descriptors[mine_], &count, sizeof count) == sizeof count;
    while (bells_.rung[mine_] == heard_)
      if (syscall(SYS_futex, &bells_.rung[mine_], FUTEX_WAIT, heard_, nullptr, nullptr, 0) != 0 && errno == EINTR)
        return false;
    ++heard_;
    return true;
  }

 private:
  Bells &bells_;
  WakeUp how_;
  int mine_;
  std::uint32_t heard_ = 0;
};

int answer_bell(Bells &bells, WakeUp how) {
  Pin pin(1);
  Bell bell(bells, how, 1);
  for (int call = 0; call < kPacedCalls; ++call)
    if (!bell.sleep() || !bell.ring_other()) return 1;
  return 0;
}

}  // namespace

Result<double> wake_up_round_trip(WakeUp how) {
  void *memory = mmap(nullptr, sizeof(Bells), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Error{Code::kNoMemory, "no shared memory for the baseline", {}, errno};
  auto &bells = *new (memory) Bells{};
  for (auto &descriptor : bells.descriptors) descriptor = eventfd(0, EFD_CLOEXEC);
  double us = 0;
  bool alive = true;
  {
    Partner partner([&](int, int) { return answer_bell(bells, how); });
    SleepLimit limit;
    Pin pin(0);
    Bell bell(bells, how, 0);
    us = paced_us(kPacedCalls, [&](bool) { alive = alive && bell.ring_other() && bell.sleep(); });
  }
  for (int descriptor : bells.descriptors) close(descriptor);
  munmap(memory, sizeof(Bells));
  if (!alive) return Error{Code::kPeerLost, "the partner of the wake-up baseline ended early"};
  return us;
}

}  // namespace bench
