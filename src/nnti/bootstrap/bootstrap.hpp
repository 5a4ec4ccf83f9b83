// SPDX-License-Identifier: BSD-3-Clause
// How two processes that know only a URL become peers: a stream socket, a version check, a mutual proof of the job's
// credential, and the exchange of what the transport needs (a "hello": bytes and, on UNIX sockets, descriptors).
// src/nnti/README.md gives the pages byte by byte. Shared by shm (UNIX sockets), and ofi, ucx and tcp (TCP).
//
// The socket stays open for the connection's life: its end is the peer's death, seen at once even when all is idle.
// Nothing here blocks: a stranger who connects and says nothing costs a descriptor until its deadline.
#pragma once

#include "base/fd.hpp"

#include <base/clock.hpp>
#include <base/credential.hpp>
#include <nessie/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nnti::bootstrap {

using nessie::Credential;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kMaxPageBytes = 16 << 10;
inline constexpr std::size_t kMaxDescriptors = 8;

enum class PageType : std::uint16_t {
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kWelcome = 4,
  kRefusal = 5,
  kTransport = 6
};

/// One unit of the conversation.
struct Page {
  PageType type = PageType::kHello;
  std::size_t descriptor_count = 0;  ///< as the header says
  std::vector<std::byte> body;
  std::vector<nessie::Fd> descriptors;  ///< filled in by PageSocket; invalid: this process had none left to receive it
};

/// Of a descriptor that could not be made, or received.
Error no_descriptors();

/// Appends the page's bytes to `out`.
void encode_page(PageType type, std::size_t descriptor_count, std::span<const std::byte> body,
                 std::vector<std::byte> &out);

/// Cuts a byte stream into pages. Its input is untrusted.
class PageDecoder {
 public:
  void feed(std::span<const std::byte> bytes);
  /// The next whole page; empty if more bytes are needed. kBadMessage: what came is no page.
  Result<std::optional<Page>> next();

 private:
  void forget();

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
};

/// A connected, non-blocking stream socket that carries pages.
class PageSocket {
 public:
  explicit PageSocket(nessie::Fd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }
  /// The descriptor, to be used for something else.
  nessie::Fd take() { return std::move(socket_); }
  /// Queues a page and writes what the socket takes. Errors show in receive(). Without its descriptors, if it has to
  /// wait and this process has none left to keep them.
  void send(PageType type, std::span<const std::byte> body, std::span<const int> descriptors = {});
  /// Writes what is left. kPeerLost.
  Status flush();
  bool has_unsent() const { return !unsent_.empty(); }
  std::size_t unsent() const { return unsent_.size(); }
  /// The next page; empty: none yet. kPeerLost: the peer closed or died. kBadMessage.
  Result<std::optional<Page>> receive();
  /// How many it holds: its own, and those of pages that are not whole.
  std::size_t descriptors() const;

 private:
  struct Unsent {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;
    std::vector<nessie::Fd> descriptors;
  };
  /// Reads once. False: nothing there. kPeerLost: the end.
  Result<bool> read_some();
  /// Writes once. False: the socket takes no more for now.
  Result<bool> write_some(Unsent &unsent, std::span<const int> descriptors);
  Status take_descriptors(Page &page);

  nessie::Fd socket_;
  int cause_ = 0;  ///< errno of the first failed write: the kernel tells it once, and then only that this is the end
  PageDecoder decoder_;
  std::list<Unsent> unsent_;
  /// That came with the beginning of one page. The kernel gives no more with one read.
  struct Received {
    std::vector<nessie::Fd> descriptors;
    bool some_are_lost = false;  ///< this process has too many open
  };
  std::vector<Received> received_;  ///< of pages that are not whole
};

/// What a transport tells its peer at the beginning.
struct Hello {
  std::vector<std::byte> blob;
  std::vector<nessie::Fd> descriptors;
};

/// A finished handshake: the socket, to be watched for the peer's end, and what the peer said.
struct Established {
  PageSocket socket;
  Hello theirs;
};

/// What is spoken after the handshake: "shm", or "shm, sealed".
std::string protocol_name(std::string_view transport, bool sealed);

/// The connecting side. Dropping it gives up.
class Connector {
 public:
  /// `transport` is the protocol_name(): both sides must agree. `mine` may be large (kMaxPageBytes).
  Connector(nessie::Fd socket, std::string_view transport, const Credential &credential, Hello mine);
  int fd() const { return socket_.fd(); }
  bool wants_write() const { return socket_.has_unsent(); }
  /// Empty: not finished. kRefused: the credentials differ, or the peer's transport declined; kUnsupported: versions or
  /// transports differ; kPeerLost; kBadMessage.
  std::optional<Result<Established>> advance();

 private:
  std::optional<Result<Established>> on_page(Page page);
  Status on_challenge(const Page &page);

  PageSocket socket_;
  std::string transport_;
  const Credential credential_;
  Hello mine_;
  nessie::Nonce nonce_{};
  bool proved_ = false;
};

/// The accepting side: a listening socket and the handshakes in progress on it.
class Listener {
 public:
  /// Decides about a peer that has proved the credential: what to answer, or why not. `socket` is the peer's.
  using Answer = std::function<Result<Hello>(int socket, Hello &theirs)>;
  /// Takes over a finished connection; called right after its Answer. Neither may call back into the listener.
  using Accept = std::function<void(Established established)>;
  struct Limits {
    /// Of descriptors that those hold who have not proved themselves: sockets, and what they sent. The oldest beyond
    /// are dropped.
    std::size_t half_open = 256;
    std::chrono::milliseconds handshake{10'000};
  };

  /// `listening` is a bound, listening, non-blocking stream socket.
  Listener(nessie::Fd listening, std::string_view transport, const Credential &credential, Answer answer, Accept accept,
           Limits limits);
  Listener(nessie::Fd listening, std::string_view transport, const Credential &credential, Answer answer, Accept accept)
      : Listener(std::move(listening), transport, credential, std::move(answer), std::move(accept), Limits()) {}
  ~Listener();
  /// An epoll descriptor: readable when progress() has something to do.
  int wait_fd() const { return epoll_.get(); }
  /// Accepts, goes on with handshakes, drops the late ones. Returns the number of connections finished.
  std::size_t progress();
  /// When the next handshake is late.
  Deadline timer() const;
  std::size_t half_open() const { return half_open_.size(); }

 private:
  struct HalfOpen;
  void accept_all();
  enum class Step { kWaiting, kDone, kDropped };
  Step advance(HalfOpen &peer);
  Step on_page(HalfOpen &peer, Page page);
  Step on_hello(HalfOpen &peer, const Page &page);
  Step on_proof(HalfOpen &peer, Page page);
  void watch(HalfOpen &peer);

  void bound();
  void expire();
  void pause();
  void resume();

  nessie::Fd listening_, epoll_;
  std::optional<Deadline> paused_until_;  ///< no descriptors left: accepts nothing until then
  std::string transport_;
  const Credential credential_;
  Answer answer_;
  Accept accept_;
  Limits limits_;
  std::list<std::unique_ptr<HalfOpen>> half_open_;
};

/// Sockets for the two families. All non-blocking, close-on-exec.
Result<nessie::Fd> listen_unix(std::string_view abstract_name);
/// kPeerLost if nobody listens under that name.
Result<nessie::Fd> connect_unix(std::string_view abstract_name);
/// `host` a numeric address, `port` 0 for any free one.
Result<nessie::Fd> listen_tcp(const std::string &host, std::uint16_t port);
/// Starts to connect; failure to reach the peer shows as kPeerLost in Connector::advance().
Result<nessie::Fd> connect_tcp(const std::string &host, std::uint16_t port);

}  // namespace nnti::bootstrap
