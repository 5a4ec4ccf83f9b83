// SPDX-License-Identifier: BSD-3-Clause
// A process of its own for nssi's tests.
//   nssi_test_peer serve TRANSPORT          prints its URL and serves until it is killed
//   nssi_test_peer lend TRANSPORT URL SIZE  lets the service at URL pull SIZE bytes again and again until it is killed
#include <cstdio>
#include <nssi/testing.hpp>

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
  auto call = (*runtime)->call(*peer, kPullForever, {}, options);
  std::printf("lending\n");
  std::fflush(stdout);
  return call.wait().ok() ? 0 : 1;
}

}  // namespace
}  // namespace nssi::testing

int main(int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "serve") return nssi::testing::serve(words[1]);
  if (words.size() == 4 && words[0] == "lend") return nssi::testing::lend(words[1], words[2], std::stoul(words[3]));
  return 2;
}
