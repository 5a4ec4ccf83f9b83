// SPDX-License-Identifier: BSD-3-Clause
// Which of the URLs of a list an endpoint connects over, and why not over the others.
#include "nnti/endpoint_impl.hpp"

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

/// An attempt leaves half of the time to the next one.
Deadline share_of(Deadline deadline, bool is_last) {
  if (is_last || deadline.is_never() || deadline.passed()) return deadline;
  return Deadline::in((deadline.when() - nessie::Clock::now()) / 2);
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

Result<PeerId> Endpoint::Impl::try_to_connect(Transport &transport, const Url &url, Deadline deadline) {
  auto connecting = transport.connect(url, deadline);
  if (!connecting.ok()) return connecting.error();
  for (;;) {
    if (auto outcome = (*connecting)->advance()) {
      if (!outcome->ok()) return outcome->error();
      return add_peer(***outcome);
    }
    if (deadline.passed())
      return Error{Code::kTimedOut, fmt::format("{} did not answer in time", url.to_string()), nessie::Scope::kPeer};
    if (progress() == 0) waiter.wait(transports, deadline);
  }
}

// --- one call of connect() --------------------------------------------------------------------------------------------

namespace {

class Search {
 public:
  Search(Endpoint::Impl &endpoint, std::vector<Url> targets)
      : endpoint_(endpoint), targets_(std::move(targets)), candidates_(in_order(endpoint.preferences(), targets_)) {}

  Result<PeerId> run(Deadline deadline) {
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (auto peer = try_candidate(i, share_of(deadline, i + 1 == candidates_.size()))) return std::move(*peer);
    pass_over_strangers();
    return failure();
  }

 private:
  /// Empty: the next one may do.
  std::optional<Result<PeerId>> try_candidate(std::size_t index, Deadline deadline) {
    const auto &target = *candidates_[index];
    auto transport = endpoint_.transport_reaching(target);
    if (transport.code() == Code::kInvalidArgument) return transport.error();  // a setting has a wrong value
    if (!transport.ok()) return pass_over(target, transport.error());
    auto peer = endpoint_.try_to_connect(**transport, target, deadline);
    if (peer.ok()) {
      pass_over_rest(index);
      endpoint_.find(*peer)->passed_over = fmt::format("{}", fmt::join(passed_over_, "; "));
      return peer;
    }
    if (peer.code() == Code::kRefused) return peer;  // it is there, and wants another credential
    if (!failed_) failed_ = peer.error();
    ++attempts_;
    return pass_over(target, peer.error());
  }

  std::nullopt_t pass_over(const Url &target, const Error &why) {
    passed_over_.push_back(fmt::format("{}: {}", target.transport, why.message));
    return std::nullopt;
  }

  void pass_over_rest(std::size_t chosen) {
    for (const auto *rest : std::span(candidates_).subspan(chosen + 1))
      passed_over_.push_back(fmt::format("{}: comes after {}", rest->transport, candidates_[chosen]->transport));
    pass_over_strangers();
  }

  void pass_over_strangers() {
    for (const auto &target : targets_)
      if (std::ranges::find(candidates_, &target) == candidates_.end())
        passed_over_.push_back(endpoint_.why_not_ours(target.transport));
  }

  /// Where one URL alone could be tried, its own error.
  Error failure() const {
    if (attempts_ == 1 && passed_over_.size() == 1) return *failed_;
    auto text = fmt::format("cannot be reached from here: {}", fmt::join(passed_over_, "; "));
    if (candidates_.size() < targets_.size()) text += "; there are: " + endpoint_.describe_preferences();
    return {failed_ ? failed_->code : Code::kUnsupported, std::move(text), nessie::Scope::kPeer,
            failed_ ? failed_->cause : 0};
  }

  Endpoint::Impl &endpoint_;
  std::vector<Url> targets_;
  std::vector<const Url *> candidates_;  ///< in order of preference
  std::vector<std::string> passed_over_;
  std::optional<Error> failed_;  ///< of the first attempt
  int attempts_ = 0;
};

}  // namespace

Result<PeerId> Endpoint::connect(std::string_view url, Deadline deadline) {
  auto targets = Url::parse_list(url);
  if (targets.ok()) return Search(*impl_, std::move(*targets)).run(deadline);
  return Error{Code::kInvalidArgument,
               fmt::format("{}; an endpoint's URL is transport://address, and its transport one of: {}",
                           targets.error().message, impl_->describe_preferences())};
}

std::string Endpoint::explain(PeerId peer) const {
  auto *known = impl_->find(peer);
  if (known == nullptr) return fmt::format("there is no peer {} any more", peer.value);
  auto text = known->connection->explain();
  return known->passed_over.empty() ? text : fmt::format("{} (not over {})", text, known->passed_over);
}

}  // namespace nnti
