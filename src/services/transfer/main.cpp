// SPDX-License-Identifier: BSD-3-Clause
// nessie-transfer: the transfer service in a process of its own.
#include "options.hpp"

#include <base/descriptors.hpp>
#include <base/log.hpp>
#include <nssi/discovery.hpp>

#include <csignal>
#include <cstdio>
#include <span>
#include <vector>

namespace {

namespace log = nessie::log;
/// How long the requests that were accepted may take when the service is to end.
constexpr std::chrono::seconds kFinish{10};
constexpr std::chrono::seconds kAnnounce{10};
nssi::Runtime *serving = nullptr;
volatile std::sig_atomic_t asked_before = 0;

/// Asked once, it finishes what it has accepted; asked again, it ends.
void stop(int) {
  if (asked_before == 0) return asked_before = 1, serving->stop_when_done(nessie::Deadline::in(kFinish));
  serving->stop();
}

/// The signals that ask for the end make run() return, also if it begins only later.
void listen_to_signals(nssi::Runtime &runtime) {
  serving = &runtime;
  struct sigaction action = {};
  action.sa_handler = stop;
  for (const int signal : {SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

void ignore_signals() {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_IGN);
}

/// Says where the service is, for as long as what it returns lives.
nessie::Result<std::vector<nssi::Announcement>> announce(nssi::Runtime &runtime, std::span<const std::string> places) {
  std::vector<nssi::Announcement> announced;
  for (const auto &place : places) {
    auto each = nssi::announce(runtime, place, {.kind = "transfer"}, nessie::Deadline::in(kAnnounce));
    if (!each.ok()) return each.error();
    announced.push_back(*std::move(each));
  }
  std::printf("%s\n", runtime.url().c_str());
  if (std::fflush(stdout) == 0) return announced;
  return nessie::Error{nessie::Code::kIo, "cannot write the URL to the standard output"};
}

int fail(const nessie::Error &error) { return log::error("{}", error.message), 2; }

int serve(transfer::CommandLine line) {
  transfer::Server server(line.server);
  line.runtime.reload_on_hangup = true;
  auto runtime = nssi::Runtime::open(std::move(line.runtime));
  if (!runtime.ok()) return fail(runtime.error());
  if (auto status = server.add_to(**runtime, line.provider); !status.ok()) return fail(status.error());
  listen_to_signals(**runtime);
  const auto announced = announce(**runtime, line.places);
  if (announced.ok()) (*runtime)->run();
  ignore_signals();
  return announced.ok() ? 0 : fail(announced.error());
}

}  // namespace

int main(int argc, char **argv) {
  log::set_program("nessie-transfer");
  nessie::raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  auto line = transfer::parse_command_line(argc, argv);
  if (!line) return log::error("{}", line.error().message), 2;
  if (line->help) return std::fputs(transfer::kUsage, stdout), 0;
  return serve(*std::move(line));
}
