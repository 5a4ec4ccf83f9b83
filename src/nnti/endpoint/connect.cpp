// SPDX-License-Identifier: BSD-3-Clause
// Which of the URLs of a list an endpoint connects over, and why not over the others.
#include "nnti/endpoint/impl.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nnti {
namespace {

using nessie::Url;

/// The URLs whose transports are among `preferences`, in that order.
std::vector<const Url *> in_order(const std::vector<std::string> &preferences, const std::vector<Url> &targets) {
  std::vector<const Url *> ordered;
  for (const auto &name : preferences)
    for (const auto &target : targets)
      if (target.transport == name) ordered.push_back(&target);
  return ordered;
}

}  // namespace

/// "inproc, shm, ofi (cannot be opened here: libfabric is not installed)".
std::string Endpoint::Impl::describe_preferences() const {
  auto names = preferences();
  for (auto &name : names)
    if (auto found = unopenable.find(name); found != unopenable.end())
      name += fmt::format(" (cannot be opened here: {})", found->second);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Endpoint::Impl::why_not_ours(std::string_view transport) const {
  const bool known = find_transport_kind(transport, known_kinds(options.extra_transports)).has_value();
  if (known) return fmt::format("{}: this endpoint was opened without it", transport);
  return fmt::format("{}: no transport is called so here", transport);
}

Result<Transport *> Endpoint::Impl::transport_reaching(const Url &url) {
  auto transport = transport_named(url.transport);
  if (!transport.ok()) return transport;
  if (*transport == nullptr) {
    auto found = unopenable.find(url.transport);
    return Error{Code::kUnsupported, found == unopenable.end() ? "cannot be opened here" : found->second};
  }
  auto reachable = (*transport)->can_reach(url);
  // A wrong address spoils its own URL only; it is no reason not to look at the others.
  if (!reachable.ok()) return Error{Code::kUnsupported, reachable.error().message};
  return transport;
}

// --- one attempt ------------------------------------------------------------------------------------------------------

/// Goes through the URLs in order of preference.
struct ConnectAttempt::Impl {
  Impl(Endpoint::Impl &owner, std::vector<Url> urls, Deadline give_up_at)
      : endpoint(owner),
        targets(std::move(urls)),
        candidates(in_order(owner.preferences(), targets)),
        deadline(give_up_at) {}

  std::optional<Result<PeerId>> advance() {
    while (index < candidates.size()) {
      if (auto outcome = connecting ? go_on() : start()) return outcome;
      if (connecting) return std::nullopt;
      ++index;
    }
    pass_over_strangers();
    return failure();
  }

  // Empty: the next one may do, unless `connecting`.

  std::optional<Result<PeerId>> start() {
    const auto &target = *candidates[index];
    auto transport = endpoint.transport_reaching(target);
    if (transport.code() == Code::kInvalidArgument) return transport.error();  // a setting has a wrong value
    if (transport.code() == Code::kPeerLost) return fail(transport.error());   // its network is down
    if (!transport.ok()) return pass_over(target, transport.error());
    const bool is_last = index + 1 == candidates.size();
    limit = is_last ? deadline : deadline.halfway();
    auto begun = (*transport)->connect(target, limit);
    if (!begun.ok()) return fail(begun.error());
    connecting = std::move(*begun);
    return go_on();
  }

  std::optional<Result<PeerId>> go_on() {
    auto outcome = connecting->advance();
    if (!outcome && !limit.passed()) return std::nullopt;
    if (!outcome)
      return fail({Code::kTimedOut, fmt::format("{} did not answer in time", candidates[index]->to_string()),
                   nessie::Scope::kPeer});
    if (!outcome->ok()) return fail(outcome->error());
    const auto peer = endpoint.add_peer(***outcome);
    pass_over_rest();
    endpoint.find(peer)->passed_over = fmt::format("{}", fmt::join(passed_over, "; "));
    return peer;
  }

  std::optional<Result<PeerId>> fail(const Error &error) {
    connecting.reset();
    if (error.code == Code::kRefused) return error;  // it is there, and wants another credential
    if (!failed) failed = error;
    ++attempts;
    return pass_over(*candidates[index], error);
  }

  std::nullopt_t pass_over(const Url &target, const Error &why) {
    passed_over.push_back(fmt::format("{}: {}", target.transport, why.message));
    return std::nullopt;
  }

  void pass_over_rest() {
    for (const auto *rest : std::span(candidates).subspan(index + 1))
      passed_over.push_back(fmt::format("{}: comes after {}", rest->transport, candidates[index]->transport));
    pass_over_strangers();
  }

  void pass_over_strangers() {
    for (const auto &target : targets)
      if (std::ranges::find(candidates, &target) == candidates.end())
        passed_over.push_back(endpoint.why_not_ours(target.transport));
  }

  /// Where one URL alone could be tried, its own error.
  Error failure() const {
    if (attempts == 1 && passed_over.size() == 1) return *failed;
    auto text = fmt::format("cannot be reached from here: {}", fmt::join(passed_over, "; "));
    if (candidates.size() < targets.size()) text += "; there are: " + endpoint.describe_preferences();
    return {failed ? failed->code : Code::kUnsupported, std::move(text), nessie::Scope::kPeer,
            failed ? failed->cause : 0};
  }

  Endpoint::Impl &endpoint;
  const std::vector<Url> targets;
  const std::vector<const Url *> candidates;  ///< in order of preference
  const Deadline deadline;
  std::size_t index = 0;
  std::unique_ptr<Connecting> connecting;  ///< to candidates[index]
  Deadline limit = Deadline::never();      ///< its own
  std::vector<std::string> passed_over;
  std::optional<Error> failed;  ///< of the first attempt
  int attempts = 0;
};

ConnectAttempt::ConnectAttempt(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConnectAttempt::ConnectAttempt(ConnectAttempt &&) noexcept = default;
ConnectAttempt &ConnectAttempt::operator=(ConnectAttempt &&) noexcept = default;
ConnectAttempt::~ConnectAttempt() = default;

std::optional<Result<PeerId>> ConnectAttempt::advance() { return impl_->advance(); }
Deadline ConnectAttempt::due() const { return impl_->connecting ? impl_->limit : Deadline::now(); }

Result<ConnectAttempt> Endpoint::start_connecting(std::string_view url, Deadline deadline) {
  auto targets = Url::parse_list(url);
  if (targets.ok())
    return ConnectAttempt(std::make_unique<ConnectAttempt::Impl>(*impl_, std::move(*targets), deadline));
  return Error{Code::kInvalidArgument,
               fmt::format("{}; an endpoint's URL is transport://address, and its transport one of: {}",
                           targets.error().message, impl_->describe_preferences())};
}

Result<PeerId> Endpoint::connect(std::string_view url, Deadline deadline, const std::stop_token &stop) {
  auto attempt = start_connecting(url, deadline);
  if (!attempt.ok()) return attempt.error();
  const std::stop_callback interrupt(stop, [this] { wake(); });
  while (!stop.stop_requested()) {
    if (auto outcome = attempt->advance()) return std::move(*outcome);
    if (progress() == 0) wait(attempt->due());
  }
  return Error{Code::kCancelled, fmt::format("nobody wants to connect to {} any more", url), nessie::Scope::kPeer};
}

std::string Endpoint::explain(PeerId peer) const {
  auto *known = impl_->find(peer);
  if (known == nullptr) return fmt::format("there is no peer {} any more", peer.value);
  auto text = known->connection->explain();
  return known->passed_over.empty() ? text : fmt::format("{} (not over {})", text, known->passed_over);
}

}  // namespace nnti
