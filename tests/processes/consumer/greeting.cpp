// SPDX-License-Identifier: BSD-3-Clause
// A service and its caller, in one process.
#include <greeting_rpc.hpp>

#include <cstdio>
#include <thread>

namespace GREETER = greeting::GREETER::ONE;

struct Greeter final : GREETER::Server {
  nssi::Outcome<greeting::greeting> REPEAT(nssi::Request &, const greeting::greeting &one,
                                           std::int32_t times) override {
    return greeting::greeting{one.text, one.times * times};
  }
};

static int call(const std::string &url) {
  auto runtime = nssi::Runtime::open({});
  if (!runtime) return 1;
  auto peer = (*runtime)->connect(url, nessie::Deadline::in(std::chrono::seconds(20)));
  if (!peer) return 1;
  GREETER::Client greeter(**runtime, *peer);
  auto answer = greeter.REPEAT({std::string("hello"), 2}, 21);
  std::printf("%s\n", answer ? (answer->text + " " + std::to_string(answer->times)).c_str()
                             : answer.error().to_string().c_str());
  return answer ? 0 : 1;
}

int main() {
  auto runtime = nssi::Runtime::open({});
  Greeter greeter;
  if (!runtime || !greeter.add_to(**runtime)) return 1;
  std::thread server([&] { (*runtime)->run(); });
  const int code = call((*runtime)->url());
  (*runtime)->stop();
  server.join();
  return code;
}
