// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/directory/server/server.hpp"

#include <base/config_reader.hpp>
#include <base/credential.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace directory {

namespace {

constexpr std::chrono::milliseconds kLongestWatch{600'000};
/// Changes that come together, as when a job starts, are told together.
constexpr std::chrono::milliseconds kGather{5};
/// Each has a stack, and the kernel lets a process have about 65000 pieces of memory, of which that is two.
constexpr std::size_t kMostWatches = 16384;

Error is_being_stopped() { return {Code::kUnavailable, "the directory is being stopped", nessie::Scope::kService}; }

}  // namespace

Result<ServerLimits> limits_of(const nessie::Config &config) {
  ServerLimits limits;
  nessie::ConfigReader read(config);
  read.count("directory.entries", limits.registry.entries, 1, MAX_INSTANCES);
  read.count("directory.entries_per_caller", limits.registry.entries_per_caller, 1, MAX_INSTANCES);
  read.count("directory.watches", limits.watches, 1, kMostWatches);
  read.count("directory.watches_per_caller", limits.watches_per_caller, 1, kMostWatches);
  if (!read.status().ok()) return read.status().error();
  return limits;
}

Server::Server(nssi::Runtime &runtime, ServerLimits limits)
    : runtime_(runtime),
      limits_(limits),
      registry_(limits.registry, [this](const std::string &name) { tell_watches(name); }),
      incarnation_(nessie::random_u64()) {}

nessie::ProviderType Server::type() {
  const auto prepare = [](const nessie::Config &config, nssi::RuntimeOptions &options) -> Status {
    const auto limits = limits_of(config);
    if (!limits.ok()) return limits.error();
    options.max_fibers += limits->watches;  // each waits in one
    return {};
  };
  return {.name = "directory",
          .prepare = prepare,
          .start = [](const nessie::ProviderContext &context) -> Result<std::unique_ptr<nessie::Provider>> {
            const auto limits = limits_of(context.config);
            return limits.ok() ? start(context, *limits) : limits.error();
          }};
}

Result<std::unique_ptr<nessie::Provider>> Server::start(const nessie::ProviderContext &context,
                                                        const ServerLimits &limits) {
  std::unique_ptr<Server> server(new Server(context.runtime, limits));
  if (auto status = server->add_to(context.runtime, context.number); !status.ok()) return status.error();
  context.runtime.spawn([server = server.get()] { server->expire_in_time(); });
  return std::unique_ptr<nessie::Provider>(std::move(server));
}

nssi::Outcome<grant> Server::ANNOUNCE(nssi::Request &request, const announcement &announcement) {
  auto granted = registry_.announce(request.caller(), announcement, Clock::now());
  if (alarm_ && registry_.next_expiry().when() < alarm_at_.when()) alarm_->set();
  return granted;
}

nssi::Outcome<bool> Server::WITHDRAW(nssi::Request &, const secret &key) { return registry_.withdraw(key); }

nssi::Outcome<listing> Server::LIST(nssi::Request &, const query &query) {
  if (auto status = check(query); !status.ok()) return status.error();
  return now(query);
}

listing Server::now(const query &query) {
  registry_.expire(Clock::now());
  return {{incarnation_, registry_.generation()}, registry_.list(query)};
}

bool Server::has_changed(const query &query, const mark &seen) const {
  return seen.incarnation != incarnation_ || registry_.has_changed(query, seen.generation);
}

// --- watches ----------------------------------------------------------------------------------------------------------

/// A watch's place in the list, for as long as it waits.
class Server::Watching {
 public:
  Watching(Server &server, PeerId caller, const query &query)
      : server_(server), at_(server.watches_.emplace(server.watches_.end(), server.runtime_, caller, query)) {}
  ~Watching() { server_.watches_.erase(at_); }
  Watching(const Watching &) = delete;
  Watch &watch() { return *at_; }

 private:
  Server &server_;
  std::list<Watch>::iterator at_;
};

nssi::Outcome<listing> Server::WATCH(nssi::Request &request, const query &query, const mark &seen,
                                     std::uint32_t timeout_ms) {
  if (auto status = check(query); !status.ok()) return status.error();
  if (auto status = check_room_for_watch(request.caller()); !status.ok()) return status.error();
  const auto patience = std::min<std::chrono::milliseconds>(std::chrono::milliseconds(timeout_ms), kLongestWatch);
  Watching watching(*this, request.caller(), query);
  if (auto status = wait_for_change(request, watching.watch(), seen, Deadline::in(patience)); !status.ok())
    return status.error();
  return now(query);
}

Status Server::check_room_for_watch(PeerId caller) const {
  const auto its = std::ranges::count(watches_, caller, &Watch::caller);
  if (static_cast<std::size_t>(its) >= limits_.watches_per_caller)
    return Error{Code::kBusy, fmt::format("a process may wait for {} changes at once: watch a common beginning of the "
                                          "names, or raise directory.watches_per_caller where the directory runs",
                                          limits_.watches_per_caller)};
  if (watches_.size() < limits_.watches) return {};
  return Error{Code::kBusy, fmt::format("{} others wait for changes already: try again later, or raise "
                                        "directory.watches where the directory runs",
                                        watches_.size())};
}

/// At the deadline, too, ok.
Status Server::wait_for_change(nssi::Request &request, Watch &watch, const mark &seen, Deadline deadline) {
  const bool was_quiet = !has_changed(watch.what, seen);
  while (!has_changed(watch.what, seen) && !deadline.passed()) {
    if (is_ending_) return is_being_stopped();
    auto status = request.wait(*watch.event, deadline);
    if (status.ok()) watch.event = std::make_unique<nssi::Event>(runtime_);
    if (auto still = request.check(); !still.ok()) return still;
  }
  if (was_quiet && !deadline.passed()) return request.sleep_until(Deadline::in(kGather).earlier(deadline));
  return {};
}

void Server::tell_watches(const std::string &name) {
  for (auto &watch : watches_)
    if (matches(watch.what, name)) watch.event->set();
}

std::string Server::describe() const {
  return fmt::format("announced: {}, waiting for changes: {}", registry_.size(), watches_.size());
}

void Server::quiesce() {
  is_ending_ = true;
  for (auto &watch : watches_) watch.event->set();
}

// --- leases -----------------------------------------------------------------------------------------------------------

/// A fiber, until the runtime ends.
void Server::expire_in_time() {
  for (;;) {
    alarm_ = std::make_unique<nssi::Event>(runtime_);
    alarm_at_ = registry_.next_expiry();
    if (alarm_->wait(alarm_at_).code() == Code::kCancelled) return alarm_.reset();
    registry_.expire(Clock::now());
  }
}

}  // namespace directory
