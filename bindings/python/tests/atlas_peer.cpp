// SPDX-License-Identifier: BSD-3-Clause
// The service of stub_test.x in C++, and a client of one in Python.
//   nessie_python_atlas_peer serve      prints its URL and serves until it is killed
//   nessie_python_atlas_peer call URL   calls every operation there; says what is not as it should be, and "done"
#include <nssi/stub/stub_test_atlas.hpp>

#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

using nessie::Code;
using nessie::Deadline;
using nssi::Bytes;
using nssi::Outcome;
using nssi::Request;
namespace FIRST = stub_test::ATLAS::FIRST;
using stub_test::point;

/// BURN burns for ever.
class Atlas final : public nssi::testing::Atlas {
 public:
  explicit Atlas(nssi::Runtime &runtime) : runtime_(runtime) {}
  Outcome<void> BURN(Request &) override {
    runtime_.sleep_until(Deadline::never());
    return {};
  }

 private:
  nssi::Runtime &runtime_;
};

std::unique_ptr<nssi::Runtime> open(bool listen) {
  nssi::RuntimeOptions options;
  options.endpoint.transports = {"shm"};
  options.endpoint.listen = listen;
  auto opened = nssi::Runtime::open(std::move(options));
  if (!opened.ok()) std::fprintf(stderr, "%s\n", opened.error().to_string().c_str());
  return opened.ok() ? *std::move(opened) : nullptr;
}

int serve() {
  auto runtime = open(true);
  if (!runtime) return 1;
  Atlas atlas(*runtime);
  if (!atlas.add_to(*runtime).ok()) return 1;
  std::puts(runtime->url().c_str());
  std::fflush(stdout);
  runtime->run();
  return 0;
}

int faults = 0;
void expect(bool is_so, const char *what) {
  if (!is_so) std::printf("not so: %s\n", what), ++faults;
}
#define EXPECT(what) expect(what, #what)

void call_with_data(FIRST::Client &atlas, nssi::Runtime &runtime) {
  auto buffer = runtime.allocate(16 << 20, nnti::Rights::kReadWrite);
  if (!buffer.ok()) return expect(false, "there is memory");
  EXPECT(atlas.FILL(3, *buffer).ok());
  const auto sum = atlas.SUM(*buffer);
  EXPECT(sum.ok() && *sum == std::uint64_t{3} * (16 << 20));
  EXPECT(atlas.NEGATE(*buffer).ok());
  EXPECT(buffer->bytes().back() == std::byte{0xfc});
}

void call_all(FIRST::Client &atlas) {
  EXPECT(atlas.NOTHING().ok());
  EXPECT(*atlas.ADD(40, 2) == 42);
  EXPECT(*atlas.SHORT(-7) == -7);
  EXPECT(*atlas.GREET("Ada") == "hello Ada");
  EXPECT((*atlas.MIRROR({3, 4}) == point{-3, -4}));
  EXPECT(atlas.WALK({1, 1}, 3)->size() == 3);
  EXPECT((*atlas.FIND(stub_test::color::RED)->where() == point{1, 2}));
  EXPECT(atlas.FIND(stub_test::color::GREEN)->where() == nullptr);
  for (std::size_t size : {0, 1, 511, 4096, 100'000, 1 << 22}) EXPECT(atlas.ECHO(Bytes(size))->size() == size);
  const auto refused = atlas.REFUSE(28);
  EXPECT(!refused.ok() && refused.error().code == Code::kIo && refused.error().cause == 28);
  EXPECT(!refused.ok() && refused.error().scope == nessie::Scope::kService);
  EXPECT(atlas.WALK({0, 0}, 9).code() == Code::kInternal);
  const auto burnt = atlas.BURN();
  EXPECT(burnt.code() == Code::kInternal);
  EXPECT(burnt.error().message.find("RuntimeError: the roof is on fire") != std::string::npos);
}

int call(const char *url) {
  auto runtime = open(false);
  if (!runtime) return 1;
  auto peer = runtime->connect(url, Deadline::in(std::chrono::seconds(20)));
  if (!peer.ok()) return 1;
  FIRST::Client atlas(*runtime, *peer);
  call_all(atlas);
  call_with_data(atlas, *runtime);
  EXPECT(runtime->call(atlas.service(), FIRST::ADD, Bytes(5)).wait().code() == Code::kBadMessage);
  std::puts("done");
  return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 2) return serve();
  if (what == "call" && argc == 3) return call(argv[2]);
  return 2;
}
