// SPDX-License-Identifier: BSD-3-Clause
// README.md says what peers do.
#include <nssi/discovery.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "fields_calls.hpp"
#include "fields_service.hpp"

namespace {

nessie::Deadline soon() { return nessie::Deadline::in(std::chrono::seconds(20)); }

int complain(const nessie::Error &error) {
  std::printf("error: %s\n", error.to_string().c_str());
  return 1;
}

int serve(std::unique_ptr<nssi::Runtime> runtime, const char *where) {
  fields_peer::Fields fields(*runtime);
  fields_peer::Second second;
  if (auto status = fields.add_to(*runtime); !status.ok()) return complain(status.error());
  if (auto status = second.add_to(*runtime, 5); !status.ok()) return complain(status.error());
  std::optional<nssi::Announcement> announcement;
  if (where != nullptr) {
    auto announced = nssi::announce(*runtime, where, {"fields"}, soon());
    if (!announced.ok()) return complain(announced.error());
    announcement.emplace(*std::move(announced));
  }
  std::puts(runtime->url().c_str());
  std::fflush(stdout);
  runtime->run();
  announcement.reset();
  runtime.reset();  // before what serves it
  return 0;
}

int call(nssi::Runtime &runtime, const char *what) {
  const auto peer = nssi::connect_to(runtime, what, soon());
  if (!peer.ok()) return complain(peer.error());
  const int faults = fields_peer::check_all(runtime, *peer);
  std::printf("%d faults\n", faults);
  std::fflush(stdout);
  return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const bool serves = (argc == 3 || argc == 4) && std::string(argv[1]) == "serve";
  if (!serves && (argc != 4 || std::string(argv[1]) != "call")) return 2;
  nssi::RuntimeOptions options;
  options.endpoint.transports = {argv[2]};
  options.endpoint.listen = serves;
  auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime.ok()) return complain(runtime.error());
  return serves ? serve(*std::move(runtime), argv[3]) : call(**runtime, argv[3]);
}
