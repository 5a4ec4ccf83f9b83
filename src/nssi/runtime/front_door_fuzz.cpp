// SPDX-License-Identifier: BSD-3-Clause
// What a runtime makes of messages in any order, of any kind, from a peer that means no good: as a service, and as a
// client that has calls under way. Whatever came, others are served, and calls end.
//
// An input is a list of messages. Of each: a byte that says what it begins with (a kind's prefix, or nothing), one for
// the id, one for its length, and so many bytes. So that inputs do the same whatever was before: a caller is a new one
// each time, and answers are to the calls that the client has just made.
#include <base/testing/fuzz.hpp>

#include <nssi/nssi.hpp>
#include <nssi/wire/wire.hpp>

#include <thread>

using namespace nssi;

namespace {

constexpr Interface kInterface{0x20000001, 1};
constexpr OpCode kNoop = 1, kEcho = 2, kPull = 3, kPooled = 4;
constexpr std::uint32_t kKinds = 11;  ///< one more than there are; the last one: nothing but the bytes
constexpr auto kPatience = std::chrono::seconds(20);

struct Listener final : nnti::EventSink {
  void on_message(PeerId, std::span<const std::byte> message) override {
    if (const auto prefix = wire::prefix_of(message); prefix && prefix->kind == wire::Kind::kRequest)
      calls.push_back(prefix->id);
  }
  void on_peer_connected(PeerId peer) override { connected = peer; }
  void on_peer_lost(PeerId, const Error &) override {}
  PeerId connected;
  std::vector<std::uint64_t> calls;  ///< ids of requests that came
};

template <class T> T must(nessie::Result<T> result) {
  nessie::fuzz::require(result.ok());
  return *std::move(result);
}

RuntimeOptions options(bool listen) {
  RuntimeOptions options;
  options.endpoint.transports = {"inproc"};
  options.endpoint.listen = listen;
  options.endpoint.config.set("nssi.reconnect", "0");
  options.endpoint.config.set("nssi.timeout", "1s");
  options.endpoint.config.set("nssi.max_long", "64K");
  options.limits.requests_of_caller = 8;
  return options;
}

/// A service on a thread of its own, with handlers of all kinds.
class Service {
 public:
  Service() : runtime_(must(Runtime::open(with_pool()))) {
    add(kNoop, HandlerKind::kShort, [](Request &r) { (void)r.reply(); });
    add(kEcho, HandlerKind::kFiber, [](Request &r) { (void)r.reply(r.args()); });
    add(kPull, HandlerKind::kFiber, [](Request &r) {
      std::vector<std::byte> some(64);
      (void)r.get_data(some, 0);
      (void)r.reply();
    });
    add(
        kPooled, HandlerKind::kFiber, [](Request &r) { (void)r.reply(r.args()); }, "pool");
    thread_ = std::thread([this] { runtime_->run(); });
  }
  ~Service() {
    runtime_->stop();
    thread_.join();
  }
  std::string url() const { return runtime_->url(); }

 private:
  static RuntimeOptions with_pool() {
    auto with = options(true);
    with.pools = {{"pool", 1}};
    return with;
  }
  void add(OpCode op, HandlerKind kind, Handler handler, const char *pool = "") {
    Operation operation{kInterface, 0, op, "op" + std::to_string(op), kind, std::move(handler)};
    operation.pool = pool;
    nessie::fuzz::require(runtime_->add_operation(std::move(operation)).ok());
  }
  std::unique_ptr<Runtime> runtime_;
  std::thread thread_;
};

/// The messages of an input, one after the other.
class Messages {
 public:
  /// Ids are places in `ids`; without, four bits are the slot, and four how often it was used.
  explicit Messages(std::span<const std::byte> input, std::span<const std::uint64_t> ids = {})
      : left_(input), ids_(ids) {}
  bool next(std::vector<std::byte> &message) {
    if (left_.size() < 3) return false;
    const auto kind = std::to_integer<std::uint32_t>(left_[0]) % kKinds;
    const auto id = std::to_integer<std::uint64_t>(left_[1]);
    const auto size = std::min(std::to_integer<std::size_t>(left_[2]), left_.size() - 3);
    message.clear();
    if (kind != kKinds - 1) {
      const auto first = static_cast<wire::Kind>(static_cast<std::uint32_t>(wire::Kind::kRequest) + kind);
      message = xdr::encode(wire::Prefix{first, ids_.empty() ? (id >> 4) << 32 | (id & 15) : ids_[id % ids_.size()]});
      if (first == wire::Kind::kHello) {
        const auto session = xdr::encode(++sessions_);
        message.insert(message.end(), session.begin(), session.end());
      }
    }
    message.insert(message.end(), left_.begin() + 3, left_.begin() + 3 + static_cast<std::ptrdiff_t>(size));
    left_ = left_.subspan(3 + size);
    return true;
  }

 private:
  static inline std::uint64_t sessions_ = 0;
  std::span<const std::byte> left_;
  std::span<const std::uint64_t> ids_;
};

/// Somebody who connects to the service, and somebody who calls it as he should.
class AgainstService {
 public:
  void run(std::span<const std::byte> input) {
    const auto peer = must(endpoint_->connect(service_.url(), Deadline::in(kPatience)));
    Messages messages(input);
    for (std::vector<std::byte> message; messages.next(message); endpoint_->progress())
      (void)endpoint_->send(peer, message);
    nessie::fuzz::require(good_->call({service_peer_, kInterface, 0}, kEcho, std::vector<std::byte>(4)).wait().ok());
    endpoint_->progress();
    endpoint_->disconnect(peer);
  }

 private:
  Service service_;
  Listener listener_;
  std::unique_ptr<nnti::Endpoint> endpoint_ = must(nnti::Endpoint::open(options(false).endpoint, listener_));
  std::unique_ptr<Runtime> good_ = must(Runtime::open(options(false)));
  PeerId service_peer_ = must(good_->connect(service_.url(), Deadline::in(kPatience)));
};

/// Somebody whom a client takes for a service.
class AgainstClient {
 public:
  AgainstClient() {
    bool is_there = false;
    std::thread connecting([&] {
      peer_ = must(client_->connect(endpoint_->url(), Deadline::in(kPatience)));
      done_ = true;
    });
    while (!done_.load()) is_there |= endpoint_->progress() != 0;
    connecting.join();
    nessie::fuzz::require(is_there && listener_.connected.value != 0);
  }
  void run(std::span<const std::byte> input) {
    std::vector<Call> calls;
    for (int i = 0; i < 4; ++i)
      calls.push_back(client_->call({peer_, kInterface, 0}, kEcho, std::vector<std::byte>(4)));
    for (listener_.calls.clear(); listener_.calls.size() < calls.size();) endpoint_->progress();
    const auto ids = listener_.calls;
    Messages messages(input, ids);
    for (std::vector<std::byte> message; messages.next(message); endpoint_->progress())
      (void)endpoint_->send(listener_.connected, message);
    for (auto &call : calls) (void)call.test();
    calls.clear();
    endpoint_->progress();
    (void)client_->call({peer_, kInterface, 0}, kNoop, std::vector<std::byte>()).test();
  }

 private:
  Listener listener_;
  std::atomic<bool> done_{false};
  std::unique_ptr<nnti::Endpoint> endpoint_ = must(nnti::Endpoint::open(options(true).endpoint, listener_));
  std::unique_ptr<Runtime> client_ = must(Runtime::open(options(false)));
  PeerId peer_;
};

template <class Message>
void append(std::vector<std::byte> &input, wire::Kind kind, std::uint8_t id, const Message &whole) {
  const std::size_t kPrefixBytes = kind == wire::Kind::kHello ? 12 + 8 : 12;  // and the session's first half
  const auto encoded = xdr::encode(whole);
  input.push_back(
      static_cast<std::byte>(static_cast<std::uint32_t>(kind) - static_cast<std::uint32_t>(wire::Kind::kRequest)));
  input.push_back(std::byte(id));
  input.push_back(static_cast<std::byte>(encoded.size() - kPrefixBytes));
  input.insert(input.end(), encoded.begin() + static_cast<std::ptrdiff_t>(kPrefixBytes), encoded.end());
}

wire::Request request(OpCode op) {
  wire::Request request;
  request.interface = kInterface;
  request.op = op;
  request.timeout_ms = 50;
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static AgainstService service;
  static AgainstClient client;
  const std::span input(reinterpret_cast<const std::byte *>(data), size);
  if (input.empty()) return 0;
  if (std::to_integer<int>(input[0]) % 2 == 0)
    service.run(input.subspan(1));
  else
    client.run(input.subspan(1));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  using wire::Kind;
  static constexpr std::byte kBytes[8] = {};
  std::vector<std::byte> calls{std::byte{0}}, answers{std::byte{1}};
  append(calls, Kind::kHello, 0, wire::Hello());
  append(calls, Kind::kProof, 0, wire::RoleProof{{}, "inproc://x", {}});
  std::uint8_t id = 0x10;  // the first use of each slot
  for (const auto op : {kNoop, kEcho, kPull, kPooled}) {
    auto plain = request(op), full = request(op), far = request(op), one_way = request(op);
    plain.args = kBytes;
    full.data = wire::Buffer{{1, 2, 3, 4, 5, nnti::Rights::kReadWrite}};
    full.does_not_wait.emplace();
    far.long_args = full.data;
    one_way.is_one_way.emplace();
    for (const auto &each : {plain, full, far, one_way}) append(calls, Kind::kRequest, id++, each);
  }
  append(calls, Kind::kCancel, 0x11, wire::Prefix());
  append(calls, Kind::kResultFetched, 0x10, wire::Prefix());
  append(answers, Kind::kWelcome, 0, wire::Welcome{{}, 7, {}});
  append(answers, Kind::kBusy, 1, wire::Busy{{}, 5});
  append(answers, Kind::kInvited, 0, wire::Invited{{}, kInterface, 0});
  append(answers, Kind::kResult, 2, wire::PlainResult{.result = kBytes});
  append(answers, Kind::kCancelled, 3, wire::Prefix());
  wire::Result failed, far;
  failed.failure = wire::Failure{3, 1, 0, "no"};
  far.long_result = wire::Buffer{{1, 2, 3, 4, 5, nnti::Rights::kReadWrite}};
  append(answers, Kind::kResult, 1, failed);
  append(answers, Kind::kResult, 0, far);
  return {calls, answers};
}
