// SPDX-License-Identifier: BSD-3-Clause
#include <service/connection.hpp>

#include <fmt/format.h>

namespace nessie::service {

namespace {

constexpr std::chrono::milliseconds kGlance{1};
/// Of one attempt, so that a service that was started anew elsewhere meanwhile is found.
constexpr std::chrono::seconds kLongestAttempt{5};

}  // namespace

Status pause(nssi::Runtime &runtime, Deadline until) {
  runtime.sleep_until(until);
  if (until.passed()) return {};
  return Error{Code::kCancelled, "the runtime is being destroyed"};
}

Result<PeerId> connect_in_fiber(nssi::Runtime &runtime, const std::string &url, Deadline deadline) {
  auto attempt = runtime.endpoint().start_connecting(url, deadline);
  if (!attempt.ok()) return attempt.error();
  for (;;) {
    if (auto outcome = attempt->advance()) return *outcome;
    if (auto status = pause(runtime, Deadline::in(kGlance)); !status.ok()) return status.error();
  }
}

Connection::~Connection() {
  if (peer_) runtime_.disconnect(*peer_);
}

std::optional<PeerId> Connection::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

Result<PeerId> Connection::connect(Deadline deadline) {
  if (const auto known = peer()) return *known;
  const auto where = find_();
  if (!where.ok()) return where.error();
  const auto attempt = Deadline::in(kLongestAttempt).earlier(deadline);
  auto connected =
      runtime_.in_fiber() ? connect_in_fiber(runtime_, *where, attempt) : runtime_.connect(*where, attempt);
  if (connected.ok()) return keep(*connected);
  auto error = connected.error();
  error.message = fmt::format("{} cannot be reached: {}", what_, error.message);
  return error;
}

/// Two may have connected at once.
PeerId Connection::keep(PeerId peer) {
  const auto kept = [&] {
    const std::lock_guard lock(mutex_);
    return peer_ ? *peer_ : *(peer_ = peer);
  }();
  if (kept != peer) runtime_.disconnect(peer);
  return kept;
}

void Connection::lose(PeerId peer) {
  {
    const std::lock_guard lock(mutex_);
    if (peer_ != peer) return;
    peer_.reset();
  }
  runtime_.disconnect(peer);
}

}  // namespace nessie::service
