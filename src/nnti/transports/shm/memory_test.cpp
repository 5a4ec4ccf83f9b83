// SPDX-License-Identifier: BSD-3-Clause
// What a peer costs, in bytes of this process: its heap, and shared memory by the share that the kernel counts to it.
#include "nnti/conformance/tools_testing.hpp"

#include <nnti/nnti.hpp>

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace nnti {
namespace {

using namespace std::chrono_literals;

struct Counter final : EventSink {
  void on_message(PeerId from, std::span<const std::byte> message) override {
    ++messages;
    if (endpoint != nullptr) (void)endpoint->send(from, message).ok();  // who is set to, echoes
  }
  void on_peer_connected(PeerId peer) override { peers.push_back(peer); }
  void on_peer_lost(PeerId, const Error &) override { ++lost; }
  Endpoint *endpoint = nullptr;
  std::vector<PeerId> peers;
  int messages = 0, lost = 0;
};

std::unique_ptr<Endpoint> open(EventSink &sink, const nessie::Credential &credential, const std::string &channel,
                               bool listen) {
  EndpointOptions options;
  options.transports = {"shm"};
  options.credential = credential;
  options.listen = listen;
  options.config.set("nnti.channel", channel);
  auto endpoint = Endpoint::open(std::move(options), sink);
  EXPECT_TRUE(endpoint.ok());
  return endpoint.ok() ? std::move(*endpoint) : nullptr;
}

struct Usage {
  long heap_bytes = 0, shared_bytes = 0;
  static Usage now() {
    const auto heap = ::mallinfo2();
    Usage usage{static_cast<long>(heap.uordblks + heap.hblkhd), 0};
    std::ifstream rollup("/proc/self/smaps_rollup");
    for (std::string word; rollup >> word;)
      if (long kilobytes = 0; word == "Pss_Shmem:" && rollup >> kilobytes) usage.shared_bytes = kilobytes * 1024;
    return usage;
  }
};

/// Many endpoints in another process, and one here.
class OneAmongMany {
 public:
  OneAmongMany(std::string channel, bool we_listen) : channel_(std::move(channel)), we_listen_(we_listen) {
    allow_descriptors();
    if (::pipe(to_child_) != 0 || ::pipe(from_child_) != 0) ADD_FAILURE() << "no pipes";
    child_ = ::fork();
    if (child_ == 0) serve();
    ::close(to_child_[0]);
    ::close(from_child_[1]);
    own_ = open(seen_, credential_, channel_, we_listen_);
    urls_ = ::fdopen(from_child_[0], "r");
    tell(we_listen_ ? own_->url() + "\n" : std::string("\n"));
  }
  ~OneAmongMany() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::fclose(urls_);
    ::close(to_child_[1]);
  }

  /// Connects to so many more of them, or waits for them.
  void connect(std::size_t count) {
    auto target = peers_.size() + count;
    if (we_listen_) {
      tell(std::string(count, '+'));
      ASSERT_TRUE(until([&] { return seen_.peers.size() == target; }));
      peers_ = seen_.peers;
      return rest();
    }
    for (std::array<char, 256> url; peers_.size() < target && std::fgets(url.data(), url.size(), urls_) != nullptr;) {
      auto peer =
          own_->connect(std::string(url.data()).substr(0, std::string(url.data()).find('\n')), Deadline::in(kWatchdog));
      ASSERT_TRUE(peer.ok()) << peer.error().to_string();
      peers_.push_back(*peer);
    }
    ASSERT_EQ(peers_.size(), target);
    rest();
  }
  /// A message to each, and one back.
  void talk() {
    for (auto peer : peers_) ASSERT_TRUE(own_->send(peer, std::as_bytes(std::span("hello"))).ok());
    auto target = seen_.messages + static_cast<int>(peers_.size());
    ASSERT_TRUE(until([&] { return seen_.messages == target; }));
    rest();
  }

 private:
  using Deadline = nessie::Deadline;
  static constexpr int kMany = 301;

  static void allow_descriptors() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  void tell(const std::string &text) {
    ASSERT_EQ(::write(to_child_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool until(const std::function<bool()> &state) {
    return test::until(state, [this] {
      if (own_->progress() == 0) own_->wait(Deadline::in(10ms));
    });
  }
  /// As many turns as it takes to look at everything.
  void rest() {
    for (int i = 0; i < 2000; ++i) own_->progress();
  }

  /// The child: connects one endpoint for each '+' that it reads, or says the URLs of all; then echoes.
  [[noreturn]] void serve() {
    ::alarm(300);  // whatever happens, no orphan stays
    std::string url;
    for (char c; ::read(to_child_[0], &c, 1) == 1 && c != '\n';) url += c;
    std::vector<std::unique_ptr<Counter>> sinks;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
    for (int i = 0; i < kMany; ++i) {
      sinks.push_back(std::make_unique<Counter>());
      endpoints.push_back(open(*sinks.back(), credential_, channel_, !we_listen_));
      sinks.back()->endpoint = endpoints.back().get();
      char c;
      if (we_listen_ &&
          (::read(to_child_[0], &c, 1) != 1 || !endpoints.back()->connect(url, Deadline::in(kWatchdog)).ok()))
        ::_exit(1);
      if (auto line = endpoints.back()->url() + "\n";
          !we_listen_ && ::write(from_child_[1], line.data(), line.size()) < 0)
        ::_exit(1);
    }
    for (int i = 0; !we_listen_ && i < kMany; ++i)  // in this order they are connected to
      while (sinks[i]->peers.empty())
        if (endpoints[i]->progress() == 0) endpoints[i]->wait(Deadline::in(kWatchdog));
    for (;;) {
      std::size_t events = 0;
      for (auto &endpoint : endpoints) events += endpoint->progress();
      if (events == 0) endpoints[0]->wait(Deadline::in(1ms));
    }
  }

  std::string channel_;
  bool we_listen_;
  nessie::Credential credential_ = nessie::Credential::generate();
  Counter seen_;
  int to_child_[2], from_child_[2];
  pid_t child_ = -1;
  std::FILE *urls_ = nullptr;
  std::unique_ptr<Endpoint> own_;
  std::vector<PeerId> peers_;
};

struct Case {
  std::string channel;
  bool we_listen;
  long idle_limit, used_limit;
};
void PrintTo(const Case &one, std::ostream *out) {
  *out << one.channel << (one.we_listen ? ", accepting" : ", connecting");
}

class MemoryOfAPeer : public testing::TestWithParam<Case> {};

TEST_P(MemoryOfAPeer, IsWithinWhatIsPromised) {
  if (test::kSanitized) GTEST_SKIP() << "the sanitizer's heap is another one";
  constexpr int kPeers = 300;
  OneAmongMany many(GetParam().channel, GetParam().we_listen);
  many.connect(1);
  const auto before = Usage::now();
  many.connect(kPeers);
  const auto idle = Usage::now();
  const long heap = (idle.heap_bytes - before.heap_bytes) / kPeers;
  const long shared = (idle.shared_bytes - before.shared_bytes) / kPeers;
  RecordProperty("idle_heap_bytes", static_cast<int>(heap));
  RecordProperty("idle_shared_bytes", static_cast<int>(shared));
  std::printf("  connected, idle: %ld bytes of heap, %ld of shared memory\n", heap, shared);
  EXPECT_LE(heap + shared, GetParam().idle_limit);
  many.talk();
  const auto used = Usage::now();
  const long in_use = (used.heap_bytes - before.heap_bytes + used.shared_bytes - before.shared_bytes) / kPeers;
  std::printf("  after a message each way: %ld bytes\n", in_use);
  EXPECT_LE(in_use, GetParam().used_limit);
}

// A peer's own table and queue are its cost, not ours; of those pages that both touch, the kernel counts half to us.
INSTANTIATE_TEST_SUITE_P(Shm, MemoryOfAPeer,
                         testing::Values(Case{"mailbox", true, 1024, 8192}, Case{"mailbox", false, 1024, 8192},
                                         Case{"shared-queue", true, 1024, 1024 + 2 * 4096},
                                         Case{"shared-queue", false, 1024, 1024 + 2 * 4096}));

}  // namespace
}  // namespace nnti
