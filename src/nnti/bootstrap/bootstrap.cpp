// SPDX-License-Identifier: BSD-3-Clause
// The handshake's two sides. Pages and their bodies: src/nnti/README.md.
#include "nnti/bootstrap/bootstrap.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <base/log.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace nnti::bootstrap {
namespace {

using nessie::Code;
using nessie::Nonce;
using nessie::Proof;
using nessie::Scope;

constexpr std::size_t kMaxNameBytes = 32;
constexpr std::string_view kSealed = ", sealed";
constexpr std::size_t kMaxRefusalBytes = 1024;

Error bad_handshake(std::string_view what) {
  return {Code::kBadMessage, fmt::format("the peer's handshake is wrong: {}", what), Scope::kPeer};
}

/// Reads the fixed parts of a page's body.
class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> body) : rest_(body) {}
  std::uint32_t number(std::size_t bytes) {
    std::uint32_t value = 0;
    for (auto byte : take(bytes)) value = value << 8 | static_cast<std::uint32_t>(byte);
    return value;
  }
  template <std::size_t N> std::array<std::byte, N> array() {
    std::array<std::byte, N> value{};
    std::ranges::copy(take(N), value.begin());
    return value;
  }
  std::string text(std::size_t bytes) {
    auto taken = take(bytes);
    return {reinterpret_cast<const char *>(taken.data()), taken.size()};
  }
  std::span<const std::byte> rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      good_ = false;
      return {};
    }
    auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  std::span<const std::byte> rest_;
  bool good_ = true;
};

class BodyWriter {
 public:
  BodyWriter &number(std::uint32_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) body_.push_back(static_cast<std::byte>(value >> shift));
    return *this;
  }
  BodyWriter &bytes(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, std::back_inserter(body_));
    return *this;
  }
  BodyWriter &text(std::string_view text) { return bytes(std::as_bytes(std::span(text))); }
  const std::vector<std::byte> &body() const { return body_; }

 private:
  std::vector<std::byte> body_;
};

Nonce fresh_nonce() {
  Nonce nonce;
  nessie::random_bytes(nonce);
  return nonce;
}

void send_hello(PageSocket &socket, PageType type, std::span<const std::byte> head, const Hello &hello) {
  std::vector<int> descriptors;
  for (const auto &descriptor : hello.descriptors) descriptors.push_back(descriptor.get());
  socket.send(type, BodyWriter().bytes(head).bytes(hello.blob).body(), descriptors);
}

/// Why who speaks `theirs` cannot be talked to in `ours`.
std::string other_protocol(std::string_view ours, std::string_view theirs) {
  if (theirs == std::string(ours) + std::string(kSealed))
    return "what the caller sends is sealed, and here nothing is; set nnti.encrypt alike on both sides";
  if (ours == std::string(theirs) + std::string(kSealed))
    return "what the caller sends is not sealed, and here everything is; set nnti.encrypt alike on both sides";
  return fmt::format("here is a '{}', and the caller expects another transport", ours);
}

void refuse(PageSocket &socket, Code code, std::string_view why) {
  socket.send(PageType::kRefusal,
              BodyWriter().number(static_cast<std::uint32_t>(code), 4).text(why.substr(0, kMaxRefusalBytes)).body());
}

/// What a refusal page says; its text is untrusted and made printable.
Error refusal_of(const Page &page) {
  BodyReader body(page.body);
  auto code = body.number(4);
  auto text = body.text(std::min(body.rest().size(), kMaxRefusalBytes));
  if (!body.good()) return bad_handshake("refusal");
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  bool known = code == NESSIE_REFUSED || code == NESSIE_UNSUPPORTED || code == NESSIE_BUSY || code == NESSIE_NO_MEMORY;
  return {known ? static_cast<Code>(code) : Code::kRefused, std::move(text), Scope::kPeer};
}

}  // namespace

std::string protocol_name(std::string_view transport, bool sealed) {
  return std::string(transport) + std::string(sealed ? kSealed : "");
}

// --- connecting -------------------------------------------------------------------------------------------------------

Connector::Connector(nessie::Fd socket, std::string_view transport, const Credential &credential, Hello mine)
    : socket_(std::move(socket)),
      transport_(transport),
      credential_(credential),
      mine_(std::move(mine)),
      nonce_(fresh_nonce()) {
  auto name = transport.substr(0, kMaxNameBytes);
  socket_.send(PageType::kHello, BodyWriter()
                                     .number(kVersion, 2)
                                     .number(static_cast<std::uint32_t>(name.size()), 1)
                                     .text(name)
                                     .bytes(nonce_)
                                     .body());
}

std::optional<Result<Established>> Connector::advance() {
  (void)socket_.flush().ok();
  for (;;) {
    auto page = socket_.receive();
    if (!page.ok()) return page.error();
    if (!*page) return std::nullopt;
    if (auto outcome = on_page(std::move(**page))) return outcome;
  }
}

std::optional<Result<Established>> Connector::on_page(Page page) {
  if (page.type == PageType::kRefusal) return refusal_of(page);
  if (page.type == PageType::kChallenge && !proved_) {
    auto status = on_challenge(page);
    if (!status.ok()) return status.error();
    return std::nullopt;
  }
  if (page.type == PageType::kWelcome && proved_)
    return Established{std::move(socket_), Hello{std::move(page.body), std::move(page.descriptors)}};
  return bad_handshake("a page out of turn");
}

Status Connector::on_challenge(const Page &page) {
  BodyReader body(page.body);
  auto version = body.number(2);
  if (body.good() && version != kVersion)
    return Error{
        Code::kUnsupported,
        fmt::format(
            "the peer speaks version {} of the protocol, this process version {}; run the same Nessie on both sides",
            version, kVersion)};
  auto nonce = body.array<sizeof(Nonce)>();
  auto proof = body.array<sizeof(Proof)>();
  if (!body.good()) return bad_handshake("challenge");
  if (!credential_.check(proof, "accept", nonce, nonce_))
    return Error{Code::kRefused, nessie::kPeerHasAnotherCredential};
  send_hello(socket_, PageType::kProof, credential_.prove("connect", nonce_, nonce), mine_);
  mine_.descriptors.clear();
  proved_ = true;
  return {};
}

// --- accepting --------------------------------------------------------------------------------------------------------

struct Listener::HalfOpen {
  HalfOpen(int its_set, nessie::Fd fd, Deadline late)
      : set(its_set), socket(std::move(fd)), deadline(late), nonce(fresh_nonce()) {}
  /// Closing alone does not take the socket out of the set, if a process that was forked meanwhile has it, too.
  ~HalfOpen() { leave(); }
  HalfOpen(const HalfOpen &) = delete;
  HalfOpen &operator=(const HalfOpen &) = delete;
  void leave() const {
    if (socket.fd() >= 0) ::epoll_ctl(set, EPOLL_CTL_DEL, socket.fd(), nullptr);
  }
  const int set;  ///< of epoll
  PageSocket socket;
  Deadline deadline;
  Nonce nonce, their_nonce{};
  bool challenged = false;
  bool watches_write = false;
};

Listener::Listener(nessie::Fd listening, std::string_view transport, const Credential &credential, Answer answer,
                   Accept accept, Limits limits)
    : listening_(std::move(listening)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      transport_(transport),
      credential_(credential),
      answer_(std::move(answer)),
      accept_(std::move(accept)),
      limits_(limits) {
  resume();
}

Listener::~Listener() = default;

void Listener::resume() {
  paused_until_.reset();
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listening_.get(), &event);
}

/// Out of descriptors: the listening socket would stay readable, and every wait return at once.
void Listener::pause() {
  nessie::log::warning("{}: no descriptors left to accept connections (ulimit -n); trying again in a second",
                       transport_);
  paused_until_ = Deadline::in(std::chrono::seconds(1));
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listening_.get(), nullptr);
}

std::size_t Listener::progress() {
  std::array<epoll_event, 64> events;
  int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  std::size_t finished = 0;
  for (int i = 0; i < count; ++i) {
    auto *peer = static_cast<HalfOpen *>(events[static_cast<std::size_t>(i)].data.ptr);
    if (peer == nullptr) continue;
    auto step = advance(*peer);
    if (step == Step::kWaiting) continue;
    finished += step == Step::kDone;
    half_open_.remove_if([&](const auto &candidate) { return candidate.get() == peer; });
  }
  expire();
  // Last, because these may drop half-open peers that the events above point to.
  accept_all();
  bound();
  return finished;
}

/// Strangers may send descriptors, too.
void Listener::bound() {
  std::size_t held = 0;
  for (const auto &peer : half_open_) held += peer->socket.descriptors();
  for (; held > limits_.half_open; half_open_.pop_front()) held -= half_open_.front()->socket.descriptors();
}

void Listener::expire() {
  if (paused_until_ && paused_until_->passed()) resume();
  while (!half_open_.empty() && half_open_.front()->deadline.passed()) half_open_.pop_front();
}

Deadline Listener::timer() const {
  auto next = paused_until_.value_or(Deadline::never());
  return half_open_.empty() ? next : next.earlier(half_open_.front()->deadline);
}

/// No more at once than may be half open: whoever keeps connecting does not keep the others from their turn.
void Listener::accept_all() {
  for (std::size_t accepted = 0; accepted < limits_.half_open && !paused_until_; ++accepted) {
    nessie::Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) pause();
      if (errno == ECONNABORTED || errno == EINTR) continue;
      return;
    }
    if (half_open_.size() >= limits_.half_open) half_open_.pop_front();
    half_open_.push_back(std::make_unique<HalfOpen>(epoll_.get(), std::move(socket), Deadline::in(limits_.handshake)));
    watch(*half_open_.back());
  }
}

/// Level-triggered: what has arrived meanwhile is seen at the next turn.
void Listener::watch(HalfOpen &peer) {
  epoll_event event{};
  event.events = EPOLLIN | (peer.socket.has_unsent() ? EPOLLOUT : 0u);
  event.data.ptr = &peer;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer.socket.fd(), &event) != 0)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.socket.fd(), &event);
}

Listener::Step Listener::advance(HalfOpen &peer) {
  (void)peer.socket.flush().ok();
  for (;;) {
    auto page = peer.socket.receive();
    if (!page.ok()) return Step::kDropped;
    if (!*page) break;
    auto step = on_page(peer, std::move(**page));
    if (step != Step::kWaiting) return step;
  }
  if (peer.socket.has_unsent() != peer.watches_write) {
    peer.watches_write = peer.socket.has_unsent();
    watch(peer);
  }
  return Step::kWaiting;
}

Listener::Step Listener::on_page(HalfOpen &peer, Page page) {
  if (page.type == PageType::kHello && !peer.challenged) return on_hello(peer, page);
  if (page.type == PageType::kProof && peer.challenged) return on_proof(peer, std::move(page));
  return Step::kDropped;
}

Listener::Step Listener::on_hello(HalfOpen &peer, const Page &page) {
  BodyReader body(page.body);
  auto version = body.number(2);
  if (body.good() && version != kVersion) {
    refuse(
        peer.socket, Code::kUnsupported,
        fmt::format(
            "this process speaks version {} of the protocol, the caller version {}; run the same Nessie on both sides",
            kVersion, version));
    return Step::kDropped;
  }
  auto name = body.text(body.number(1));
  peer.their_nonce = body.array<sizeof(Nonce)>();
  if (!body.good()) return Step::kDropped;
  if (name != transport_) {
    refuse(peer.socket, Code::kUnsupported, other_protocol(transport_, name));
    return Step::kDropped;
  }
  auto proof = credential_.prove("accept", peer.nonce, peer.their_nonce);
  peer.socket.send(PageType::kChallenge, BodyWriter().number(kVersion, 2).bytes(peer.nonce).bytes(proof).body());
  peer.challenged = true;
  return Step::kWaiting;
}

Listener::Step Listener::on_proof(HalfOpen &peer, Page page) {
  BodyReader body(page.body);
  auto proof = body.array<sizeof(Proof)>();
  if (!body.good()) return Step::kDropped;
  if (!credential_.check(proof, "connect", peer.their_nonce, peer.nonce)) {
    nessie::log::warning("{}: refused a peer with another credential", transport_);
    refuse(peer.socket, Code::kRefused, nessie::kCredentialsDiffer);
    return Step::kDropped;
  }
  Hello theirs{{body.rest().begin(), body.rest().end()}, std::move(page.descriptors)};
  auto answer = answer_(peer.socket.fd(), theirs);
  if (!answer.ok()) {
    nessie::log::warning("{}: refused a peer: {}", transport_, answer.error().to_string());
    refuse(peer.socket, answer.error().code, answer.error().message);
    return Step::kDropped;
  }
  peer.leave();
  send_hello(peer.socket, PageType::kWelcome, {}, *answer);
  accept_(Established{std::move(peer.socket), std::move(theirs)});
  return Step::kDone;
}

}  // namespace nnti::bootstrap
