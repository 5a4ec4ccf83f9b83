// SPDX-License-Identifier: BSD-3-Clause
// A process of its own for nssi's tests.
//   nssi_test_peer serve TRANSPORT          prints its URL and serves until it is killed
//   nssi_test_peer lend TRANSPORT URL SIZE  lets the service at URL pull SIZE bytes again and again until it is killed
//   nssi_test_peer bequeath TRANSPORT URL SIZE COUNT
//                                           says "ready"; told by SIGUSR1, lends SIZE bytes in each of COUNT requests,
//                                           and dies by SIGKILL before it can know an answer
#include <cstdio>
#include <nssi/testing/testing.hpp>

namespace nssi::testing {
namespace {

int serve(const std::string &transport) {
  ServiceThread service(options_for(transport, true));
  std::printf("%s\n", service.runtime->url().c_str());
  std::fflush(stdout);
  for (;;) ::pause();
}

int lend(const std::string &transport, const std::string &url, std::size_t size_bytes) {
  auto runtime = Runtime::open(options_for(transport, false));
  if (!runtime.ok()) return 1;
  auto peer = (*runtime)->connect(url, Deadline::in(std::chrono::seconds(20)));
  auto memory = pattern(size_bytes);
  auto buffer = (*runtime)->register_memory(memory, nnti::Rights::kRemoteRead);
  if (!peer.ok() || !buffer.ok()) return 1;
  CallOptions options;
  options.data = &*buffer;
  auto call = (*runtime)->call(at(*peer), kPullForever, {}, options);
  std::printf("lending\n");
  std::fflush(stdout);
  return call.wait().ok() ? 0 : 1;
}

/// What can be sent at once must be, or the exit code says so.
int bequeath(const std::string &transport, const std::string &url, std::size_t size_bytes, std::uint64_t count) {
  sigset_t go_on;
  ::sigemptyset(&go_on);
  ::sigaddset(&go_on, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &go_on, nullptr);
  auto runtime = Runtime::open(options_for(transport, false));
  if (!runtime.ok()) return 1;
  auto peer = (*runtime)->connect(url, Deadline::in(std::chrono::seconds(20)));
  if (!peer.ok() || !(*runtime)->can_view(*peer)) return 1;
  std::printf("ready\n");
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&go_on, &signal);
  std::vector<nnti::RegisteredBuffer> buffers;
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto buffer = (*runtime)->allocate(size_bytes, nnti::Rights::kRemoteRead);
    if (!buffer.ok()) return 1;
    std::ranges::copy(pattern(size_bytes), buffer->bytes().begin());
    buffers.push_back(std::move(*buffer));
    CallOptions options;
    options.data = &buffers.back();
    calls.push_back((*runtime)->call(at(*peer), kLook, xdr::encode(Pattern{i}), options));
  }
  return (*runtime)->has_unsent(*peer) ? 1 : ::raise(SIGKILL);
}

}  // namespace
}  // namespace nssi::testing

int main(int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "serve") return nssi::testing::serve(words[1]);
  if (words.size() == 4 && words[0] == "lend") return nssi::testing::lend(words[1], words[2], std::stoul(words[3]));
  if (words.size() == 5 && words[0] == "bequeath")
    return nssi::testing::bequeath(words[1], words[2], std::stoul(words[3]), std::stoul(words[4]));
  return 2;
}
