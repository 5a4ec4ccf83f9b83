// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/door.hpp>

#include <services/staging/board.h>
#include <base/credential.hpp>

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::size_t kMostVisitors = 256;  // further ones wait outside, in the socket's queue
constexpr int kPulseMs = 1000;
constexpr std::chrono::seconds kTimeToSpeak{10};

Error no_door(int cause) { return {Code::kIo, "cannot make a socket", nessie::Scope::kProcess, cause}; }

void say(const nnti::Fd &socket, char word) { (void)!::send(socket.get(), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

}  // namespace

void Door::Mail::ring() const {
  const std::uint64_t one = 1;
  (void)!::write(bell.get(), &one, sizeof one);
}

nessie::Result<std::unique_ptr<Door>> Door::open(Settle settle, Pulse pulse) {
  const auto name = fmt::format("nessie-door-{:016x}{:016x}", nessie::random_u64(), nessie::random_u64());
  nnti::Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0)
    return no_door(errno);
  std::unique_ptr<Door> door(new Door(std::move(listener), name, std::move(settle), std::move(pulse)));
  door->mail_->bell = nnti::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!door->mail_->bell) return no_door(errno);
  door->thread_ = std::thread([self = door.get()] { self->serve(); });
  return door;
}

Door::Door(nnti::Fd listener, std::string name, Settle settle, Pulse pulse)
    : listener_(std::move(listener)), name_(std::move(name)), settle_(std::move(settle)), pulse_(std::move(pulse)) {}

Door::~Door() {
  closing_ = true;
  mail_->ring();
  if (thread_.joinable()) thread_.join();
}

void Door::serve() {
  std::vector<bool> readable;
  for (bool visitor_came = false; !closing_;) {
    if (!wait_for_something(readable, visitor_came)) keep_up_hope();
    answer_settled();
    std::size_t i = 0;
    std::erase_if(visitors_, [&](Visitor &visitor) { return i < readable.size() && readable[i++] && !hear(visitor); });
    if (visitor_came) let_in();
  }
}

/// False: nothing happened for a pulse.
bool Door::wait_for_something(std::vector<bool> &readable, bool &visitor_came) {
  std::vector<pollfd> fds{{mail_->bell.get(), POLLIN, 0},
                          {listener_.get(), static_cast<short>(visitors_.size() < kMostVisitors ? POLLIN : 0), 0}};
  for (const auto &visitor : visitors_) fds.push_back({visitor.socket.get(), POLLIN, 0});
  const int events = ::poll(fds.data(), fds.size(), visitors_.empty() ? -1 : kPulseMs);
  std::uint64_t rings = 0;
  (void)!::read(mail_->bell.get(), &rings, sizeof rings);
  visitor_came = events > 0 && fds[1].revents != 0;
  readable.clear();
  for (std::size_t i = 2; i < fds.size(); ++i) readable.push_back(events > 0 && fds[i].revents != 0);
  return events != 0;
}

void Door::let_in() {
  while (visitors_.size() < kMostVisitors) {
    nnti::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    visitors_.push_back({std::move(socket), next_id_++, false, std::chrono::steady_clock::now()});
  }
}

/// False: the visitor has gone, or says what makes no sense.
bool Door::hear(Visitor &visitor) {
  nessie_board_place file{};
  const auto got = ::recv(visitor.socket.get(), &file, sizeof file, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got != sizeof file || visitor.waits) return false;
  visitor.waits = true;
  settle_({file.device, file.inode}, [mail = mail_, id = visitor.id] {
    const std::lock_guard lock(mail->mutex);
    mail->settled.push_back(id);
    mail->ring();
  });
  return true;
}

void Door::answer_settled() {
  std::vector<std::uint64_t> settled;
  {
    const std::lock_guard lock(mail_->mutex);
    settled.swap(mail_->settled);
  }
  if (settled.empty()) return;
  for (const auto &visitor : visitors_)
    if (std::ranges::find(settled, visitor.id) != settled.end()) say(visitor.socket, NESSIE_DOOR_SETTLED);
}

/// Tells those who wait that the server works, if it does; sends away who says nothing.
void Door::keep_up_hope() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(visitors_,
                [&](const Visitor &visitor) { return !visitor.waits && now - visitor.since > kTimeToSpeak; });
  if (mail_->alive.exchange(false))
    for (const auto &visitor : visitors_)
      if (visitor.waits) say(visitor.socket, NESSIE_DOOR_WORKING);
  pulse_([mail = mail_] { mail->alive = true; });
}

}  // namespace staging
