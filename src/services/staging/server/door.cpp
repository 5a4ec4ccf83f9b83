// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/door.hpp>

#include <services/staging/board.h>
#include <base/credential.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::size_t kMostVisitors = 1024;  // further ones wait outside, in the socket's queue
constexpr std::size_t kAtOnce = 64;
constexpr std::chrono::milliseconds kPulse{250};
constexpr std::chrono::seconds kTimeToSpeak{10};

Error no_door(int cause) { return {Code::kIo, "cannot make a socket", nessie::Scope::kProcess, cause}; }
Error no_thread(int cause) { return {Code::kIo, "cannot start a thread", nessie::Scope::kProcess, cause}; }

void say(const nessie::Fd &socket, char word) { (void)!::send(socket.get(), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

/// The server's files need descriptors, too.
std::size_t most_visitors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min<std::size_t>(kMostVisitors, limit.rlim_cur / 4)
                                                 : kMostVisitors;
}

uid_t user_of(const nessie::Fd &socket) {
  ucred who{};
  socklen_t size = sizeof who;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.uid : static_cast<uid_t>(-1);
}

bool is_foreign(uid_t user) { return user != 0 && user != ::geteuid(); }

}  // namespace

void Door::Mail::ring() const {
  const std::uint64_t one = 1;
  (void)!::write(bell.get(), &one, sizeof one);
}

nessie::Result<std::unique_ptr<Door>> Door::open(Settle settle, Pulse pulse, nessie::TimeSource time) {
  const auto name = fmt::format("nessie-door-{:016x}{:016x}", nessie::random_u64(), nessie::random_u64());
  nessie::Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0)
    return no_door(errno);
  std::unique_ptr<Door> door(new Door(std::move(listener), name, std::move(settle), std::move(pulse), time));
  door->mail_->bell = nessie::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!door->mail_->bell) return no_door(errno);
  try {
    door->thread_ = std::thread([self = door.get()] { self->serve(); });
  } catch (const std::system_error &error) { return no_thread(error.code().value()); }
  return door;
}

Door::Door(nessie::Fd listener, std::string name, Settle settle, Pulse pulse, nessie::TimeSource time)
    : listener_(std::move(listener)),
      name_(std::move(name)),
      settle_(std::move(settle)),
      pulse_(std::move(pulse)),
      time_(time),
      most_visitors_(most_visitors()) {}

Door::~Door() {
  closing_ = true;
  mail_->ring();
  if (thread_.joinable()) thread_.join();
}

void Door::serve() {
  std::vector<bool> readable;
  while (!closing_) {
    if (!spare_) spare_ = duplicate(listener_);
    const bool visitor_came = wait_for_something(readable);
    std::size_t i = 0;
    std::erase_if(visitors_, [&](Visitor &visitor) { return readable[i++] && !hear(visitor); });
    answer_settled();
    if (visitor_came) let_in();
    if (anybody_waits() && time_.now() >= next_pulse_) pulse();
  }
}

int Door::time_to_pulse_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_pulse_ - time_.now());
  return static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
}

/// Until the next pulse, if anybody waits for it. True: there are new visitors.
bool Door::wait_for_something(std::vector<bool> &readable) {
  const bool has_room = visitors_.size() < most_visitors_ && !cannot_accept_;
  std::vector<pollfd> fds{{mail_->bell.get(), POLLIN, 0}, {has_room ? listener_.get() : -1, POLLIN, 0}};
  for (const auto &visitor : visitors_) fds.push_back({visitor.socket.get(), POLLIN, 0});
  const int events = ::poll(fds.data(), fds.size(), anybody_waits() ? time_to_pulse_ms() : -1);
  std::uint64_t rings = 0;
  (void)!::read(mail_->bell.get(), &rings, sizeof rings);
  readable.clear();
  for (std::size_t i = 2; i < fds.size(); ++i) readable.push_back(events > 0 && fds[i].revents != 0);
  return events > 0 && fds[1].revents != 0;
}

void Door::let_in() {
  for (std::size_t i = 0; i < kAtOnce && visitors_.size() < most_visitors_; ++i) {
    auto socket = accept_one();
    if (!socket) return (void)(cannot_accept_ = errno != EAGAIN && errno != EINTR);
    const auto user = user_of(socket);
    if (is_welcome(user)) visitors_.push_back({std::move(socket), user, 0, time_.now()});
  }
}

/// Where files have taken all descriptors, the spare one is for a visitor: one after the other comes in.
nessie::Fd Door::accept_one() {
  const auto accept = [&] {
    return nessie::Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  };
  auto socket = accept();
  if (socket || !spare_ || (errno != EMFILE && errno != ENFILE)) return socket;
  spare_.reset();
  return accept();
}

bool Door::is_welcome(uid_t user) const {
  if (!is_foreign(user)) return true;
  const auto same = static_cast<std::size_t>(std::ranges::count(visitors_, user, &Visitor::user));
  const auto all = static_cast<std::size_t>(std::ranges::count_if(visitors_, is_foreign, &Visitor::user));
  return same < most_visitors_ / 4 && all < most_visitors_ / 2;
}

/// False: the visitor has gone, or says what makes no sense, or comes at a bad time.
bool Door::hear(Visitor &visitor) {
  nessie_board_place file{};
  const auto got = ::recv(visitor.socket.get(), &file, sizeof file, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got != sizeof file || visitor.wish != 0 || wishes_.size() >= most_visitors_) return false;
  visitor.wish = join({file.device, file.inode});
  return true;
}

/// The number of a wish for this file that has not begun before.
std::uint64_t Door::join(const FileIdentity &file) {
  bool one_has_begun = false;
  for (const auto &wish : wishes_) {
    if (!(wish.file == file)) continue;
    if (!wish.begun) return wish.number;
    one_has_begun = true;
  }
  const auto number = next_wish_++;
  wishes_.push_back({number, file});
  if (!one_has_begun) begin(wishes_.back());
  return number;
}

void Door::begin(Wish &wish) {
  wish.begun = true;
  settle_(wish.file, [mail = mail_, number = wish.number] {
    const std::lock_guard lock(mail->mutex);
    mail->settled.push_back(number);
    mail->ring();
  });
}

void Door::answer_settled() {
  std::vector<std::uint64_t> settled;
  {
    const std::lock_guard lock(mail_->mutex);
    settled.swap(mail_->settled);
  }
  for (const auto number : settled) answer(number);
}

/// To all who wait for this wish, and leave. Who came meanwhile is next.
void Door::answer(std::uint64_t number) {
  for (const auto &visitor : visitors_)
    if (visitor.wish == number) say(visitor.socket, NESSIE_DOOR_SETTLED);
  std::erase_if(visitors_, [&](const Visitor &visitor) { return visitor.wish == number; });
  const auto done = std::ranges::find(wishes_, number, &Wish::number);
  const auto file = done->file;
  wishes_.erase(done);
  const auto next = std::ranges::find(wishes_, file, &Wish::file);
  if (next != wishes_.end()) begin(*next);
}

/// Asks the server to show that it works, if it has since the last time; sends away who says nothing; tries to let in
/// who could not be let in.
void Door::pulse() {
  next_pulse_ = time_.now() + kPulse;
  cannot_accept_ = false;
  std::erase_if(visitors_, [&](const Visitor &visitor) {
    return visitor.wish == 0 && next_pulse_ - visitor.since > kTimeToSpeak;
  });
  if (mail_->alive.exchange(false)) pulse_([mail = mail_] { mail->alive = true; });
}

}  // namespace staging
