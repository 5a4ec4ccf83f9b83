// SPDX-License-Identifier: BSD-3-Clause
// README.md says what peers do.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "fields_calls.hpp"
#include "fields_service.hpp"

namespace {

int complain(const nessie::Error &error) {
  std::printf("error: %s\n", error.to_string().c_str());
  return 1;
}

int serve(std::unique_ptr<nssi::Runtime> runtime) {
  fields_peer::Fields fields(*runtime);
  fields_peer::Second second;
  if (auto status = fields.add_to(*runtime); !status.ok()) return complain(status.error());
  if (auto status = second.add_to(*runtime, 5); !status.ok()) return complain(status.error());
  std::puts(runtime->url().c_str());
  std::fflush(stdout);
  runtime->run();
  runtime.reset();  // before what serves it
  return 0;
}

/// `@FILE`: the line in FILE, which somebody writes meanwhile. Empty: nobody did, for 20 s.
std::string url_of(const std::string &word) {
  if (word[0] != '@') return word;
  std::string line;
  for (int i = 0; i < 200 && !std::getline(std::ifstream(word.substr(1)), line); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return line;
}

int call(nssi::Runtime &runtime, const std::string &url) {
  const auto peer = runtime.connect(url, nessie::Deadline::in(std::chrono::seconds(20)));
  if (!peer.ok()) return complain(peer.error());
  const int faults = fields_peer::check_all(runtime, *peer);
  std::printf("%d faults\n", faults);
  std::fflush(stdout);
  return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const bool serves = argc == 3 && std::string(argv[1]) == "serve";
  if (!serves && (argc != 4 || std::string(argv[1]) != "call")) return 2;
  nssi::RuntimeOptions options;
  options.endpoint.transports = {argv[2]};
  options.endpoint.listen = serves;
  auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime.ok()) return complain(runtime.error());
  return serves ? serve(*std::move(runtime)) : call(**runtime, url_of(argv[3]));
}
