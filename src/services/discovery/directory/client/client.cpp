// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/directory/client/client.hpp"

#include <base/birth.hpp>
#include <base/credential.hpp>
#include <services/discovery/contact/locate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace directory {

namespace {

/// A watch is asked anew so often: each request has its deadline, by which a directory that hangs is recognised.
constexpr std::chrono::seconds kOneWatch{60};
/// How long before the request's deadline the directory answers at the latest, so that the answer is in time.
constexpr std::chrono::milliseconds kForTheAnswer{500};
constexpr std::chrono::milliseconds kFirstRetry{20}, kShortestPatience{1000};

/// A third of the lease. A directory that grants next to none is not asked without a pause.
std::chrono::milliseconds renewal_period(std::uint32_t lease_ms) {
  return std::max(std::chrono::milliseconds(lease_ms) / 3, kFirstRetry);
}

/// The directory is another process: it is not believed what it says.
Result<listing> checked(Result<listing> got) {
  if (!got.ok()) return got;
  for (const auto &each : got->instances)
    if (auto status = check(each); !status.ok())
      return Error{Code::kBadMessage,
                   fmt::format("the directory lists what cannot be in one: {}", status.error().message)};
  return got;
}

Result<query> make_query(bool is_prefix, std::string_view text) {
  query query{is_prefix, std::string(text)};
  if (auto status = check(query); !status.ok()) return status.error();
  return query;
}

/// How long a directory may wait for a change, if its answer is to be here by then.
std::uint32_t patience_until(Deadline deadline) {
  if (deadline.passed()) return 0;
  const auto left = std::max(deadline.when() - Clock::now(), Clock::duration(0));
  const auto patience = left - std::min<Clock::duration>(left / 4, kForTheAnswer);
  return static_cast<std::uint32_t>(std::chrono::floor<std::chrono::milliseconds>(patience).count());
}

/// Looked at anew for each attempt: one that was started anew is elsewhere.
Result<std::string> url_at(const std::string &where) {
  auto found = nessie::service::locate(where, Deadline::now(), nessie::service::sleep);
  if (!found.ok()) return found.error();
  if (found->size() == 1) return found->front().url;
  return Error{Code::kInvalidArgument, fmt::format("'{}' names {} directories; name one", where, found->size())};
}

}  // namespace

Directory::Directory(nssi::Runtime &runtime, const std::string &where)
    : connection_(
          std::make_shared<Connection>(runtime, "the directory at " + where, [where] { return url_at(where); })) {}

Result<std::string> directory_of(const nessie::Config &config) {
  if (auto where = config.get("directory"); where && !where->empty()) return *where;
  return Error{Code::kNotFound,
               "no directory is named: set NESSIE_DIRECTORY to its URL, or to file:PATH with its contact file"};
}

Result<listing> Directory::lookup(std::string_view name, Deadline deadline) {
  auto query = make_query(false, name);
  if (!query.ok()) return query.error();
  return checked(connection_->ask<listing>(
      deadline, [&](Client &client, const nssi::CallOptions &options) { return client.LIST(*query, options); }));
}

Result<listing> Directory::list(std::string_view prefix, Deadline deadline) {
  auto query = make_query(true, prefix);
  if (!query.ok()) return query.error();
  return checked(connection_->ask<listing>(
      deadline, [&](Client &client, const nssi::CallOptions &options) { return client.LIST(*query, options); }));
}

Result<listing> Directory::watch(const query &query, mark seen, Deadline deadline) {
  if (auto status = check(query); !status.ok()) return status.error();
  for (;;) {
    const auto until = Deadline::in(kOneWatch).earlier(deadline);
    auto got = checked(connection_->ask<listing>(until, [&](Client &client, const nssi::CallOptions &options) {
      return client.WATCH(query, seen, patience_until(until), options);
    }));
    if (!got.ok() || got->at != seen) return got;
    if (deadline.when() > until.when()) continue;
    if (auto status = pause(connection_->runtime(), deadline); !status.ok()) return status.error();
    return got;
  }
}

// --- registrations ----------------------------------------------------------------------------------------------------

struct Registration::State {
  State(std::shared_ptr<Connection> its_connection, announcement what)
      : connection(std::move(its_connection)), said(std::move(what)), over(connection->runtime()) {}
  void note(const Result<grant> &outcome) {
    std::lock_guard lock(mutex);
    status = outcome.ok() ? Status() : Status(outcome.error());
  }

  const nessie::Birth birth;
  const std::shared_ptr<Connection> connection;
  const announcement said;
  std::atomic<bool> is_over{false};
  nssi::Event over;
  std::mutex mutex;
  Status status;
};

Registration::Registration(std::shared_ptr<State> state) : state_(std::move(state)) {}
Registration::Registration(Registration &&) noexcept = default;

Registration::~Registration() {
  if (!state_ || !state_->birth.was_here()) return;
  stop();
  if (const auto peer = state_->connection->peer())
    (void)Client(state_->connection->runtime(), *peer).WITHDRAW_async(state_->said.key);
}

void Registration::stop() {
  state_->is_over = true;
  state_->over.set();
}

Status Registration::status() const {
  std::lock_guard lock(state_->mutex);
  return state_->status;
}

Status Registration::withdraw(Deadline deadline) {
  if (!state_) return Error{Code::kNotFound, "it was withdrawn already"};
  stop();
  const auto state = std::move(state_);
  auto was_there = state->connection->ask<bool>(deadline, [&](Client &client, const nssi::CallOptions &options) {
    return client.WITHDRAW(state->said.key, options);
  });
  if (!was_there.ok()) return was_there.error();
  return *was_there ? Status() : Error{Code::kNotFound, "the directory did not know of it any more"};
}

/// An announcement must not follow its own withdrawal.
Result<grant> Registration::renew(State &state, Deadline deadline) {
  return state.connection->try_once<grant>(
      deadline, [&](Client &client, const nssi::CallOptions &options) -> nssi::Outcome<grant> {
        if (state.is_over) return Error{Code::kCancelled, "it was withdrawn"};
        return client.ANNOUNCE(state.said, options);
      });
}

/// A fiber, until the registration is dropped or the runtime ends.
void Registration::keep(const std::shared_ptr<State> &state) {
  auto period = renewal_period(state->said.lease_ms);
  auto wait = period, retry = kFirstRetry;
  while (state->over.wait(Deadline::in(wait)).code() == Code::kTimedOut) {
    const auto granted = renew(*state, Deadline::in(std::max(period, kShortestPatience)));
    state->note(granted);
    if (granted.ok()) {
      wait = period = renewal_period(granted->lease_ms);
      retry = kFirstRetry;
    } else {
      wait = std::exchange(retry, std::min(2 * retry, period));
    }
  }
}

Result<Registration> Directory::announce(const instance &what, std::chrono::milliseconds lease, Deadline deadline) {
  if (auto status = check(what); !status.ok()) return status.error();
  if (lease.count() <= 0 || lease.count() > UINT32_MAX)
    return Error{Code::kInvalidArgument, "a lease has 1 ms to 49 days"};
  announcement said{{}, static_cast<std::uint32_t>(lease.count()), what};
  nessie::random_bytes(said.key);
  auto granted = connection_->ask<grant>(
      deadline, [&](Client &client, const nssi::CallOptions &options) { return client.ANNOUNCE(said, options); });
  if (!granted.ok()) return granted.error();
  said.lease_ms = granted->lease_ms;
  auto state = std::make_shared<Registration::State>(connection_, std::move(said));
  connection_->runtime().spawn([state] { Registration::keep(state); });
  return Registration(std::move(state));
}

}  // namespace directory
