// SPDX-License-Identifier: BSD-3-Clause
// A channel over a transport that does what the input says: what a peer's channel sends, and what the network does to
// it meanwhile. An input is a list of events, of two bytes (what happens, how much) and as many bytes as that says; its
// first byte says which side we are, over what.
#include "nnti/channel/transport.hpp"
#include "nnti/channel/wire.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>
#include <deque>
#include <list>

namespace {

using namespace nnti;
using namespace std::chrono_literals;
using nessie::fuzz::Bytes;

struct IgnoredCompletion final : Completion {
  void on_complete(Status) override {}
};

nessie::Clock::time_point simulated_now{1h};

/// Takes everything and gives nothing; completes transfers as it is told.
class FuzzLink final : public Connection {
 public:
  explicit FuzzLink(Transport &transport) : transport_(transport) {}
  Transport &transport() override { return transport_; }
  std::string explain() const override { return "made up"; }
  std::size_t max_message_bytes() const override { return 8192; }
  bool try_send(MessageKind, std::span<const std::byte>) override { return !no_credits; }
  void get(const RemoteBuffer &, std::uint64_t, std::span<std::byte>, Completion &completion) override {
    pending_.push_back(&completion);
  }
  void put(const RemoteBuffer &, std::uint64_t, std::span<const std::byte>, Completion &completion) override {
    pending_.push_back(&completion);
  }
  void close() override {
    open = false;
    complete(Code::kCancelled);
  }
  void complete(Code code) {
    for (auto pending = std::exchange(pending_, {}); auto *completion : pending)
      completion->on_complete(code == Code::kOk ? Status() : Status(Error{code, "made up"}));
  }

  bool open = true, no_credits = false;

 private:
  Transport &transport_;
  std::vector<Completion *> pending_;
};

class FuzzConnecting final : public Connecting {
 public:
  explicit FuzzConnecting(Connection *link) : link_(link) {}
  std::optional<Result<Connection *>> advance() override {
    if (link_ == nullptr) return Error{Code::kPeerLost, "made up", nessie::Scope::kPeer};
    return link_;
  }

 private:
  Connection *link_;
};

class FuzzMemory final : public TransportMemory {
 public:
  Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
  RemoteBuffer describe() const override { return {}; }
};

/// The input's events, one a progress().
class FuzzTransport final : public Transport {
 public:
  FuzzTransport(TransportEvents &events, std::span<const std::byte> script, bool lossy)
      : events_(events), script_(script), lossy_(lossy) {}
  std::string_view name() const override { return "fuzz"; }
  Reliability reliability() const override { return lossy_ ? Reliability::kLossy : Reliability::kUntilBroken; }
  std::string url() const override { return "fuzz://here"; }
  Status can_reach(const nessie::Url &) const override { return {}; }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &, Deadline) override {
    auto *link = ++attempts_ % 4 == 0 ? nullptr : &links_.emplace_back(*this);
    return std::unique_ptr<Connecting>(std::make_unique<FuzzConnecting>(link));
  }
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &) override {
    return std::unique_ptr<TransportMemory>(std::make_unique<FuzzMemory>());
  }
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &) const override { return std::nullopt; }
  std::size_t progress() override {
    if (script_.size() < 2) return 0;
    const auto what = std::to_integer<unsigned>(script_[0]);
    const auto size = std::min<std::size_t>(std::to_integer<std::size_t>(script_[1]), script_.size() - 2);
    const auto body = script_.subspan(2, size);
    script_ = script_.subspan(2 + size);
    happen(what, body);
    return 1;
  }
  bool ready() override { return script_.size() >= 2; }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }
  void disarm(bool) override {}

 private:
  void happen(unsigned what, std::span<const std::byte> body) {
    if (what % 16 == 15) events_.accepted(links_.emplace_back(*this));
    if (what % 16 == 14) simulated_now += std::chrono::milliseconds(1u << what / 16);
    auto link = links_.begin();
    std::advance(link, links_.empty() ? 0 : what / 16 % links_.size());
    if (link == links_.end() || !link->open) return;
    if (what % 16 < 10) return events_.message(*link, MessageKind::kUser, body);
    if (what % 16 == 10) link->no_credits = !link->no_credits;
    if (what % 16 == 11)
      link->complete(body.empty() ? Code::kOk : static_cast<Code>(std::to_integer<int>(body[0]) % 16));
    if (what % 16 != 12 && what % 16 != 13) return;
    link->open = false;
    link->complete(Code::kPeerLost);
    events_.lost(*link, what % 16 == 12 ? Loss::kBroken : Loss::kGone, {Code::kPeerLost, "made up"});
  }

  TransportEvents &events_;
  std::span<const std::byte> script_;
  bool lossy_;
  unsigned attempts_ = 0;
  std::list<FuzzLink> links_;
};

/// An application that answers everything, and now and then leaves.
class FuzzUser final : public TransportEvents {
 public:
  void accepted(Connection &connection) override { use(connection); }
  void message(Connection &connection, MessageKind kind, std::span<const std::byte> message) override {
    (void)connection.try_send(kind, message);
    if (++messages_ % 16 == 0) connection.close();
  }
  void lost(Connection &, Loss, const Error &) override {}
  void use(Connection &connection) {
    connection.get({}, 0, local_, ignored_);
    connection.put({}, 0, local_, ignored_);
    (void)connection.try_send(MessageKind::kUser, local_);
  }

 private:
  unsigned messages_ = 0;
  std::array<std::byte, 64> local_{};
  IgnoredCompletion ignored_;
};

void drive_channel(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const bool lossy = first % 2 != 0, connects = first % 4 >= 2;
  FuzzUser user;
  const nessie::Credential credential;
  const nessie::Config config;
  const nessie::TimeSource time{[] { return simulated_now; }, [](nessie::Clock::duration by) { simulated_now += by; }};
  const auto opener = [&](const TransportOptions &options) -> Result<std::unique_ptr<Transport>> {
    return std::unique_ptr<Transport>(std::make_unique<FuzzTransport>(options.events, bytes.subspan(1), lossy));
  };
  Poller poller;
  auto channel = channel::open({credential, config, user, poller, true, "fuzz", time},
                               lossy ? Reliability::kLossy : Reliability::kUntilBroken, opener);
  if (!channel.ok()) return;
  std::unique_ptr<Connecting> connecting;
  if (connects)
    if (auto begun = (*channel)->connect({"fuzz", "there", {}}, Deadline::never()); begun.ok())
      connecting = std::move(*begun);
  for (int quiet = 0; quiet < 4;) {
    quiet = (*channel)->progress() == 0 ? quiet + 1 : 0;
    auto outcome = connecting ? connecting->advance() : std::nullopt;
    if (!outcome) continue;
    connecting.reset();
    if (outcome->ok()) user.use(***outcome);
  }
  connecting.reset();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  drive_channel(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  using namespace nnti::channel;
  std::vector<Bytes> corpus;
  const auto event = [](Bytes &to, int what, std::uint8_t type, std::uint64_t number, std::uint64_t acknowledged,
                        const Bytes &body) {
    HeaderBytes header;
    encode_header({type, number, acknowledged}, header);
    to.push_back(static_cast<std::byte>(what));
    to.push_back(static_cast<std::byte>(header.size() + body.size()));
    to.insert(to.end(), header.begin(), header.end());
    to.insert(to.end(), body.begin(), body.end());
  };
  const auto happens = [](Bytes &to, int what) { to.insert(to.end(), {static_cast<std::byte>(what), std::byte{0}}); };
  for (int side = 0; side < 4; ++side) {
    Bytes talk{static_cast<std::byte>(side)};
    for (std::uint32_t link = 0, number = 0; link < 3; ++link) {
      const int here = static_cast<int>(16 * link);
      if (side < 2) {
        happens(talk, 15);
        event(talk, here, 40, number, number, encode_opening({link > 0, link + 1, {}, {64, 65536}}));
      } else {
        event(talk, here, 41, number, 0, encode_opened({link + 1, {64, 65536}}));
      }
      for (int i = 0; i < 4; ++i, ++number) event(talk, here, 0, number, number / 2, Bytes(20, std::byte{7}));
      event(talk, here, 33, number, number / 2, Bytes(2, std::byte{5}));
      event(talk, here, 34, number, number / 2, {});
      happens(talk, here + 11);
      happens(talk, here + (link == 2 ? 13 : 12));
      happens(talk, 14 + 16 * 5);
    }
    event(talk, 32, 32, 12, 6, {});
    corpus.push_back(std::move(talk));
  }
  return corpus;
}
