// SPDX-License-Identifier: BSD-3-Clause
// nessie-transfer: the transfer service in a process of its own.
#include "options.hpp"

#include <base/file.hpp>
#include <base/log.hpp>

#include <csignal>
#include <cstdio>

#include <unistd.h>

namespace {

namespace log = nessie::log;
/// How long the requests that were accepted may take when the service is to end.
constexpr std::chrono::seconds kFinish{10};
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

bool announce(const std::string &url, const std::string &file) {
  std::printf("%s\n", url.c_str());
  if (std::fflush(stdout) != 0) return log::error("cannot write the URL to the standard output"), false;
  if (file.empty() || nessie::write_file(file, url + "\n")) return true;
  return log::error("cannot write {}", file), false;
}

int serve(transfer::CommandLine line) {
  transfer::Server server(line.server);
  line.runtime.reload_on_hangup = true;
  auto runtime = nssi::Runtime::open(std::move(line.runtime));
  if (!runtime) return log::error("{}", runtime.error().message), 2;
  if (auto status = server.add_to(**runtime, line.provider); !status.ok())
    return log::error("{}", status.error().message), 2;
  listen_to_signals(**runtime);
  const bool announced = announce((*runtime)->url(), line.url_file);
  if (announced) (*runtime)->run();
  ignore_signals();
  if (!line.url_file.empty()) unlink(line.url_file.c_str());
  return announced ? 0 : 2;
}

}  // namespace

int main(int argc, char **argv) {
  log::set_program("nessie-transfer");
  std::signal(SIGPIPE, SIG_IGN);
  auto line = transfer::parse_command_line(argc, argv);
  if (!line) return log::error("{}", line.error().message), 2;
  if (line->help) return std::fputs(transfer::kUsage, stdout), 0;
  return serve(*std::move(line));
}
