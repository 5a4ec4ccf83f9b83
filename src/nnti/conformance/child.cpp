// SPDX-License-Identifier: BSD-3-Clause
// The other process of the suite. It understands, as messages:
//   echo…       sends the message back
//   own, shared registers 1 MiB of its own memory, or of memory that peers can map, filled with pattern(1 MiB, 7), and
//               sends its RemoteBuffer
//   sum         sends back the sum of the bytes of that memory, as a u64
//   who am I    sends back the number of the client's process, or "nobody knows"
//   freeze      makes no more progress, but lives
//   last words  sends three messages and dies by SIGKILL
#include "nnti/conformance/conformance.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace nnti::conformance {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

class Servant {
 public:
  Servant(const Subject &subject, const nessie::Credential &credential, const std::string &listen_at)
      : node_(subject, credential, true, {{"nnti.listen_at", listen_at}}) {
    node_.seen.message_hook = [this](PeerId from, std::span<const std::byte> message) { obey(from, message); };
  }

  void run() {
    std::printf("%s\n", node_.endpoint->url().c_str());
    std::fflush(stdout);
    while (node_.seen.lost.empty())
      if (node_.endpoint->progress() == 0) node_.endpoint->wait(Deadline::never());
  }

 private:
  void answer(PeerId to, std::span<const std::byte> message) {
    if (auto sent = node_.endpoint->send(to, message); !sent.ok())
      std::fprintf(stderr, "child: %s\n", sent.error().message.c_str());
  }

  void obey(PeerId from, std::span<const std::byte> message) {
    auto order = text_of(message);
    if (order.starts_with("echo")) answer(from, message);
    if (order == "own" || order == "shared") lend(from, order == "shared");
    if (order == "sum") {
      auto bytes = buffer_.bytes();
      auto sum = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0},
                                 [](std::uint64_t a, std::byte b) { return a + static_cast<std::uint64_t>(b); });
      answer(from, raw(sum));
    }
    if (order == "who am I") {
      const auto client = node_.endpoint->process_of(from);
      answer(from, bytes_of(client.ok() ? std::to_string(*client) : "nobody knows"));
    }
    if (order == "freeze")
      for (;;) ::pause();
    if (order == "last words") {
      for (const char *word : {"one", "two", "three"}) answer(from, bytes_of(word));
      ::raise(SIGKILL);
    }
  }

  void lend(PeerId to, bool shared) {
    memory_ = pattern(kBufferBytes, 7);
    auto buffer = shared ? node_.endpoint->allocate(kBufferBytes, Rights::kReadWrite)
                         : node_.endpoint->register_memory(memory_, Rights::kReadWrite);
    if (!buffer.ok()) return;
    buffer_ = std::move(*buffer);
    if (shared) std::ranges::copy(memory_, buffer_.bytes().begin());
    auto description = buffer_.describe_for(to);
    if (description.ok()) answer(to, raw(*description));
  }

  Node node_;
  Bytes memory_;
  RegisteredBuffer buffer_;
};

}  // namespace

int run_child(int argc, char **argv) {
  ::alarm(120);  // whatever happens, no orphan stays
  if (argc != 5) return 2;
  auto credential = nessie::Credential::from_hex(argv[3]);
  auto subject = std::ranges::find(subjects(), argv[2], &Subject::name);
  if (!credential.ok() || subject == subjects().end()) return 2;
  Servant(*subject, *credential, argv[4]).run();
  return 0;
}

}  // namespace nnti::conformance

int main(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--child") return nnti::conformance::run_child(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
