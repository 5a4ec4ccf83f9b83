// SPDX-License-Identifier: BSD-3-Clause
// nessie-directory: a directory of services in a process of its own.
#include <base/descriptors.hpp>
#include <base/log.hpp>
#include <service/contact_file.hpp>
#include <service/runtime_options.hpp>
#include <services/directory/server/server.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

namespace {

namespace log = nessie::log;
namespace service = nessie::service;
using nessie::Config;
using nessie::Error;
using nessie::Status;

constexpr const char *kIntroduction =
    "A directory in which services say under which names they can be found. Nothing of it is on a disk: one that is\n"
    "started anew learns within seconds of everybody who is still there.";

constexpr const char *kFooter =
    "NESSIE_CREDENTIAL holds the job's credential. SIGTERM and SIGINT: answer what was accepted, for 10 s\n"
    "at most (not at all the second time), remove the contact file, and exit with 0. SIGHUP: read the file that\n"
    "NESSIE_CONFIG names anew.\n"
    "All settings: docs/configuration.md. How services and clients use it: docs/finding.md.\n\n"
    "Examples:\n"
    "  nessie-directory --contact /scratch/job/directory.contact &\n"
    "  export NESSIE_DIRECTORY=file:/scratch/job/directory.contact\n"
    "  nessie directory list\n";

struct Options {
  std::string contact = "nessie-directory.contact";
  std::string listen;
};

/// How long the requests that were accepted may take when the directory is to end.
constexpr std::chrono::seconds kFinish{10};

/// SIGTERM and SIGINT: withheld from all threads, once from the first, and taken by one of its own, which may do what a
/// signal's handler must not.
class Ending {
 public:
  static sigset_t signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT}) ::sigaddset(&set, number);
    return set;
  }
  static void withhold() {
    const auto set = signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
  Ending(nssi::Runtime &runtime, directory::Server &server)
      : runtime_(runtime), server_(server), thread_([this] { listen(); }) {}
  ~Ending() {
    is_over_ = true;
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  Ending(const Ending &) = delete;

 private:
  /// Asked once, it finishes what it has accepted; asked again, it ends.
  void listen() {
    const auto set = signals();
    int number = 0;
    for (bool asked_before = false; ::sigwait(&set, &number) == 0 && !is_over_; asked_before = true) {
      if (asked_before) {
        runtime_.stop();
      } else {
        server_.end_watches();
        runtime_.stop_when_done(nessie::Deadline::in(kFinish));
      }
    }
  }

  nssi::Runtime &runtime_;
  directory::Server &server_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

service::Contact describe(const nssi::Runtime &runtime) {
  return {"directory", runtime.url(), {{directory::DIRECTORY::ONE::kInterface, 0}}, {}, 0};
}

Status serve(const Config &config, const Options &options) {
  auto limits = directory::limits_of(config);
  if (!limits.ok()) return limits.error();
  auto runtime_options = service::runtime_options(config, "directory.listen");
  if (!runtime_options.ok()) return runtime_options.error();
  runtime_options->reload_on_hangup = true;
  runtime_options->max_fibers = directory::fibers_for(*limits);
  std::unique_ptr<directory::Server> server;  // outlives the runtime
  auto runtime = nssi::Runtime::open(std::move(*runtime_options));
  if (!runtime.ok()) return runtime.error();
  auto added = directory::Server::add_to(**runtime, *limits);
  if (!added.ok()) return added.error();
  server = std::move(*added);
  (*runtime)->on_peer_lost([&](nssi::PeerId peer, const Error &) { server->on_peer_lost(peer); });
  const Ending ending(**runtime, *server);
  auto contact = service::ContactFile::write(options.contact, describe(**runtime));
  if (!contact.ok()) return contact.error();
  log::info("the directory listens at {}; its contact file is {}", (*runtime)->url(), options.contact);
  (*runtime)->run();
  return {};
}

}  // namespace

int main(int argc, char **argv) {
  log::set_program("nessie-directory");
  nessie::raise_descriptor_limit();
  Ending::withhold();
  CLI::App app(kIntroduction, "nessie-directory");
  app.footer(kFooter);
  Options options;
  app.add_option("-c,--contact", options.contact, "Contact file to write: where clients read where the directory is")
      ->capture_default_str();
  app.add_option("-l,--listen", options.listen, "Transports to listen on, e.g. shm,ofi (all that this machine has)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) { return app.exit(error) == 0 ? 0 : 2; }
  auto config = Config::load();
  if (!config.ok()) return log::error("{}", config.error().message), 2;
  if (!options.listen.empty()) config->set("directory.listen", options.listen);
  const auto status = serve(*config, options);
  if (!status.ok()) return log::error("{}", status.error().message), 1;
  return 0;
}
