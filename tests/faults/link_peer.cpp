// SPDX-License-Identifier: BSD-3-Clause
// One of two processes that talk over a link that fails; link_test.py makes it fail.
//
//   link_peer serve TRANSPORT    says its URL, and serves one client
//   link_peer connect URL        is that client; the end of its standard input tells it to finish. While it cannot
//                                reach the server, it says so: "waits: …"
//
// Both send numbered, checksummed messages as fast as they are taken, and write into, and read back from, a buffer of
// the other. What they have done they say in a line each tenth of a second: "messages transfers". Exit codes: 0:
// everything that was sent has arrived, once and in order, and every byte was right; 3: the peer was lost; 1: wrong.
#include <nnti/nnti.hpp>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>
#include <base/credential.hpp>

#include <cstring>
#include <optional>
#include <random>

namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;
using nessie::Deadline;

constexpr std::size_t kBufferBytes = 4 << 20, kMostTransferred = 1 << 20;

std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 14695981039346656037u;
  for (auto byte : bytes) sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211u;
  return sum;
}

struct Head {
  std::uint64_t checksum = 0, number = 0;
  std::uint64_t last = 0;  ///< nothing follows
};

class LinkPeer final : public nnti::EventSink, nnti::Completion {
 public:
  int serve(std::string_view transport) {
    if (!open(transport, true)) return 1;
    fmt::print("{}\n", endpoint_->url());
    std::fflush(stdout);
    return talk();
  }

  int connect(std::string_view url) {
    if (!open(url.substr(0, url.find(':')), false)) return 1;
    const auto deadline = Deadline::in(30s);
    auto connected = endpoint_->connect(url, deadline);
    for (; connected.code() == nessie::Code::kPeerLost && !deadline.passed();
         connected = endpoint_->connect(url, deadline)) {
      fmt::print("waits: {}\n", connected.error().to_string());
      std::fflush(stdout);
      endpoint_->wait(Deadline::in(100ms));
    }
    if (!connected.ok()) return complain(connected.error().to_string());
    watches_input_ = true;
    begin(*connected);
    return talk();
  }

 private:
  bool open(std::string_view transport, bool listens) {
    nnti::EndpointOptions options;
    options.transports = {std::string(transport)};
    options.listen = listens;
    auto opened = nnti::Endpoint::open(std::move(options), *this);
    if (!opened.ok()) return complain(opened.error().to_string()) == 0;
    endpoint_ = std::move(*opened);
    auto buffer = endpoint_->register_memory(memory_, nnti::Rights::kReadWrite);
    if (buffer.ok()) buffer_ = std::move(*buffer);
    return buffer.ok();
  }

  int complain(std::string_view what) {
    fmt::print(stderr, "link_peer: {}\n", what);
    if (result_ == 0) result_ = 1;
    return result_;
  }

  // --- messages -----------------------------------------------------------------------------------------------------

  /// The first message tells where our buffer is.
  void begin(nnti::PeerId peer) {
    peer_ = peer;
    auto description = buffer_.describe_for(peer);
    if (!description.ok()) return (void)complain(description.error().to_string());
    (void)endpoint_->send(peer, std::as_bytes(std::span(&*description, 1)));
  }

  void on_peer_connected(nnti::PeerId peer) override { begin(peer); }

  void on_message(nnti::PeerId, std::span<const std::byte> message) override {
    if (!remote_) {
      remote_.emplace();
      if (message.size() != sizeof *remote_) return (void)complain("no description");
      std::memcpy(&*remote_, message.data(), sizeof *remote_);
      return;
    }
    Head head;
    if (message.size() < sizeof head) return (void)complain("a message was cut short");
    std::memcpy(&head, message.data(), sizeof head);
    if (head.number != received_++) complain(fmt::format("message {} instead of {}", head.number, received_ - 1));
    if (head.checksum != checksum(message.subspan(sizeof head.checksum))) complain("a message is not whole");
    peer_is_done_ = peer_is_done_ || head.last != 0;
  }

  bool send_one(bool last) {
    message_.resize(sizeof(Head) + random_() % 1000);
    for (std::size_t at = sizeof(Head); at + 4 <= message_.size(); at += 4) {
      const auto word = static_cast<std::uint32_t>(random_());
      std::memcpy(message_.data() + at, &word, sizeof word);
    }
    Head head{0, sent_, last};
    std::memcpy(message_.data(), &head, sizeof head);
    head.checksum = checksum(std::span(message_).subspan(sizeof head.checksum));
    std::memcpy(message_.data(), &head, sizeof head.checksum);
    if (endpoint_->has_unsent(*peer_) && !last) return false;
    if (!endpoint_->send(*peer_, message_).ok()) return false;
    ++sent_;
    return true;
  }

  // --- transfers ----------------------------------------------------------------------------------------------------

  /// Puts something, then gets it back.
  void transfer() {
    if (busy_ || !remote_) return;
    busy_ = true;
    if (getting_) {
      back_.assign(data_.size(), std::byte{});
      return endpoint_->get(*peer_, *remote_, offset_, back_, *this);
    }
    data_.resize(1 + random_() % kMostTransferred);
    offset_ = random_() % (kBufferBytes - data_.size());
    for (std::size_t at = 0; at < data_.size(); at += 64) data_[at] = static_cast<std::byte>(random_());
    endpoint_->put(*peer_, *remote_, offset_, data_, *this);
  }

  void on_complete(nessie::Status status) override {
    busy_ = false;
    if (!status.ok()) {
      if (!lost_ && status.code() != nessie::Code::kPeerLost) complain(status.error().to_string());
      return;
    }
    if (getting_ && back_ != data_) complain("other bytes came back");
    getting_ = !getting_;
    ++transfers_;
  }

  void on_peer_lost(nnti::PeerId, const nessie::Error &error) override {
    lost_ = true;
    if (peer_is_done_ && done_) return;
    fmt::print(stderr, "link_peer: lost: {}\n", error.to_string());
    if (result_ == 0) result_ = 3;
  }

  // --- the whole ----------------------------------------------------------------------------------------------------

  bool told_to_finish() {
    if (peer_is_done_) return true;
    if (!watches_input_) return false;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, 0) > 0;
  }

  int talk() {
    auto report = Deadline::now();
    while (result_ == 0 && !(lost_ && done_) && !(done_ && peer_is_done_ && watches_input_)) {
      const auto events = endpoint_->progress();
      bool busy = false;
      if (peer_ && !lost_ && !done_) busy = work();
      if (report.passed()) {
        fmt::print("{} {}\n", received_, transfers_);
        std::fflush(stdout);
        report = Deadline::in(100ms);
      }
      if (events == 0 && !busy) endpoint_->wait(report);
    }
    if (result_ == 0) fmt::print("done {} {} {}\n", sent_, received_, transfers_);
    std::fflush(stdout);
    return result_;
  }

  bool work() {
    if (told_to_finish()) {
      finishing_ = true;
      if (!busy_) done_ = send_one(true);
      return true;
    }
    transfer();
    bool any = false;
    for (int i = 0; i < 8 && send_one(false); ++i) any = true;
    return any;
  }

  Bytes memory_ = Bytes(kBufferBytes);
  std::unique_ptr<nnti::Endpoint> endpoint_;
  nnti::RegisteredBuffer buffer_;
  std::optional<nnti::PeerId> peer_;
  std::optional<nnti::RemoteBuffer> remote_;
  std::mt19937 random_{static_cast<std::uint32_t>(::getpid())};
  Bytes message_, data_, back_;
  std::uint64_t sent_ = 0, received_ = 0, transfers_ = 0, offset_ = 0;
  bool watches_input_ = false, busy_ = false, getting_ = false, finishing_ = false, done_ = false;
  bool peer_is_done_ = false, lost_ = false;
  int result_ = 0;
};

}  // namespace

int main(int argc, char **argv) {
  ::alarm(120);  // whatever happens, no orphan stays
  LinkPeer peer;
  if (argc == 3 && std::string_view(argv[1]) == "serve") return peer.serve(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "connect") return peer.connect(argv[2]);
  fmt::print(stderr, "link_peer serve TRANSPORT | link_peer connect URL\n");
  return 2;
}
