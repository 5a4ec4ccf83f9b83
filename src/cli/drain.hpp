// SPDX-License-Identifier: BSD-3-Clause
// Asks the staging servers to finish: each drains what it has and exits; meanwhile their progress can be read.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <nessie/result.hpp>
#include <services/staging/client/client.hpp>
#include <staging.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace nessie::cli {

/// The drain of one server, on two threads of its own: one waits for the server's answer to Shutdown, one asks for
/// reports until then. A server that answers no report within NESSIE_STAGING_TIMEOUT counts as hung.
class ServerDrain {
 public:
  ServerDrain(const Config &config, const std::string &url, const std::string &credential);
  ServerDrain(const ServerDrain &) = delete;
  /// Returns soon only if finished(), if the server is dead, or after abandon().
  ~ServerDrain();

  /// How long the server has given no sign of life, from the beginning on.
  Clock::duration silence() const;
  /// The server is not waited for any more.
  void abandon() { abandoned_.request_stop(); }
  bool is_abandoned() const { return abandoned_.stop_requested(); }

  bool finished() const;
  /// Waits so long at most; whether it is finished.
  bool finishes_within(std::chrono::milliseconds time);
  /// The server is alive perhaps, but does not answer: there is nothing to wait for.
  bool hung() const;
  /// What the server told last; the whole truth once finished() and outcome() is ok.
  std::optional<staging::ReportResult> last_report() const;
  /// After finished().
  Status outcome() const;

 private:
  void stop_server();
  void watch_server();
  Result<std::unique_ptr<staging::Client>> connect();
  void note_finished(Status outcome);

  Config config_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false, hung_ = false;
  std::optional<staging::ReportResult> report_;
  Status outcome_;
  Clock::time_point heard_ = Clock::now();
  std::stop_source abandoned_;
  std::thread stopper_, watcher_;
};

}  // namespace nessie::cli
