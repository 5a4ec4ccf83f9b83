// SPDX-License-Identifier: BSD-3-Clause
#include "composition_keeper.hpp"

#include "installation.hpp"
#include "janitor.hpp"
#include "run_directory.hpp"
#include "servers.hpp"
#include "speech.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/credential.hpp>
#include <directory_rpc.hpp>
#include <services/discovery/contact/locate.hpp>
#include <services/discovery/contact/waiting.hpp>
#include <services/launch/client/client.hpp>
#include <staging_rpc.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

namespace nessie::cli {

namespace {

using std::chrono::milliseconds;

class CompositionKeeper {
 public:
  CompositionKeeper(Signals signals, RunDirectory folder)
      : signals_(std::move(signals)),
        folder_(std::move(folder)),
        credential_(Credential::generate().to_hex()),
        contact_(folder_.file("contact")),
        janitor_({folder_.path()}, "", credential_) {}

  Status start(const Installation &installation, const std::string &file) {
    ServerOptions options;
    options.program = installation.nessied;
    options.credential = credential_;
    options.board_directory = folder_.path();
    options.arguments = {"--config", file, "--announce", "file:" + contact_};
    auto server = ChildServers::start(options, folder_, signals_);
    if (!server) return server.error();
    server_ = *std::move(server);
    return {};
  }

  Result<Standing> await_contact(const std::string &name, Deadline deadline) {
    std::error_code ignored;
    while (server_->running(0) && !std::filesystem::exists(contact_, ignored) && !deadline.passed())
      turn(milliseconds(5));
    if (!server_->running(0)) return Error{Code::kIo, "nessied " + server_->how_it_ended(0)};
    const auto found = service::locate("file:" + contact_, deadline, service::sleep);
    if (!found) return found.error();
    const auto &place = found->front();
    const auto has = [&](const nssi::Interface &interface) {
      return std::ranges::any_of(place.offers, [&](const auto &offer) { return offer.interface == interface; });
    };
    Standing standing{name, service::this_process(), {place.url}, credential_, fmt::format("1 {}", folder_.path())};
    standing.has_staging = has(staging::STAGING::CURRENT::kInterface);
    standing.has_directory = has(directory::DIRECTORY::ONE::kInterface);
    return standing;
  }

  /// Until it ends, or is to: then it finishes what it has acknowledged. Who asks twice does not wait for that.
  int keep(const StandingFiles &files) {
    while (server_->running(0) && !is_asked_ && !files.are_to_stop()) turn(kWatchForStop);
    std::error_code ignored;
    std::filesystem::remove(files.record, ignored);  // nobody attaches any more
    server_->end();
    is_asked_ = false;
    while (server_->running(0)) {
      turn(kWatchForStop);
      if (is_asked_) server_->kill(0);
    }
    say("nessied " + server_->how_it_ended(0));
    return server_->exit_code(0);
  }

 private:
  void turn(milliseconds at_most) {
    if (const auto signal = signals_.wait(Deadline::in(at_most))) is_asked_ |= asks_to_end(signal->number);
    server_->reap();
  }

  Signals signals_;
  RunDirectory folder_;
  const std::string credential_, contact_;
  Janitor janitor_;
  std::unique_ptr<ChildServers> server_;
  bool is_asked_ = false;
};

int fail(const Error &error) {
  say("error: " + error.message);
  return 1;
}

}  // namespace

int serve_composition(const std::string &file, const std::string &name, const StandingFiles &files) {
  const auto config = Config::load();
  if (!config) return fail(config.error());
  const auto timeout = launch::start_timeout(*config);
  if (!timeout) return fail(timeout.error());
  const auto installation = Installation::find();
  if (!installation) return fail(installation.error());
  auto signals = Signals::open();
  if (!signals) return fail(signals.error());
  auto folder = RunDirectory::make();
  if (!folder) return fail(folder.error());
  become_reaper();
  CompositionKeeper keeper(std::move(*signals), std::move(*folder));
  if (auto started = keeper.start(*installation, file); !started.ok()) return fail(started.error());
  const auto standing = keeper.await_contact(name, Deadline::in(*timeout));
  if (!standing) return fail(standing.error());
  if (auto written = write_standing(*standing); !written.ok()) return fail(written.error());
  return keeper.keep(files);
}

}  // namespace nessie::cli
