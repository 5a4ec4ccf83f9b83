// SPDX-License-Identifier: BSD-3-Clause
#include "drain.hpp"

#include <chrono>
#include <utility>

namespace nessie::cli {

namespace {

constexpr auto kReportInterval = std::chrono::milliseconds(100);

}  // namespace

ServerDrain::ServerDrain(const Config &config, const std::string &url, const std::string &credential)
    : config_(config) {
  config_.set("servers", url);
  config_.set("credential", credential);
  stopper_ = std::thread([this] { stop_server(); });
  watcher_ = std::thread([this] { watch_server(); });
}

ServerDrain::~ServerDrain() {
  stopper_.join();
  watcher_.join();
}

bool ServerDrain::finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

bool ServerDrain::hung() const {
  std::lock_guard lock(mutex_);
  return hung_ && !finished_;
}

std::optional<staging::ReportResult> ServerDrain::last_report() const {
  std::lock_guard lock(mutex_);
  return report_;
}

Status ServerDrain::outcome() const {
  std::lock_guard lock(mutex_);
  return outcome_;
}

void ServerDrain::note_finished(Status outcome) {
  std::lock_guard lock(mutex_);
  finished_ = true;
  outcome_ = std::move(outcome);
  changed_.notify_all();
}

Clock::duration ServerDrain::silence() const {
  std::lock_guard lock(mutex_);
  return Clock::now() - heard_;
}

Result<std::unique_ptr<staging::Client>> ServerDrain::connect() {
  auto client = staging::Client::connect(config_, "", 0, abandoned_.get_token());
  std::lock_guard lock(mutex_);
  if (client) heard_ = Clock::now();
  return client;
}

void ServerDrain::stop_server() {
  auto client = connect();
  if (!client) return note_finished(client.error());
  auto report = (*client)->shutdown(0, Deadline::never());
  if (!report) return note_finished(report.error());
  {
    std::lock_guard lock(mutex_);
    report_ = std::move(*report);
  }
  note_finished({});
}

bool ServerDrain::finishes_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return finished_; });
}

// Most drains are over before there is anything to watch.
void ServerDrain::watch_server() {
  if (finishes_within(kReportInterval)) return;
  Result<std::unique_ptr<staging::Client>> client = Error{Code::kUnavailable, "not connected yet"};
  while (true) {
    if (!client) client = connect();
    auto report = client ? (*client)->report(0) : Result<staging::ReportResult>(client.error());
    std::unique_lock lock(mutex_);
    if (finished_) return;
    if (report)
      report_ = std::move(*report), heard_ = Clock::now();
    else if (hung_ = report.code() == Code::kTimedOut; hung_)
      return;
    else
      client = report.error();  // connects anew
    if (changed_.wait_for(lock, kReportInterval, [this] { return finished_; })) return;
  }
}

}  // namespace nessie::cli
