// SPDX-License-Identifier: BSD-3-Clause
#include <services/launch/server/server.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace launch {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

Server::Server(const nessie::ProviderContext &context, std::size_t servers, std::function<void()> changed)
    : runtime_(context.runtime), changed_(std::move(changed)), places_(servers) {}

Result<std::unique_ptr<Server>> Server::start(const nessie::ProviderContext &context, std::size_t servers,
                                              std::function<void()> changed) {
  std::unique_ptr<Server> server(new Server(context, servers, std::move(changed)));
  if (auto status = server->add_to(context.runtime, context.number); !status.ok()) return status.error();
  return server;
}

std::vector<State> Server::states() const {
  const std::lock_guard lock(mutex_);
  std::vector<State> all;
  for (const auto &place : places_) all.push_back(place.state);
  return all;
}

void Server::kill(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (places_[index].to_be_killed != nullptr) places_[index].to_be_killed->set();
}

void Server::give_up(const std::string &why) {
  const std::lock_guard lock(mutex_);
  if (!why_not_) why_not_ = why;
  tell_waiting();
}

std::string Server::describe() const {
  const std::lock_guard lock(mutex_);
  const auto joined = std::ranges::count_if(places_, [](const Place &place) { return !place.state.url.empty(); });
  return fmt::format("servers that have joined: {} of {}, programs that wait for them: {}", joined, places_.size(),
                     waiting_.size());
}

void Server::quiesce() {
  give_up("the run is over");
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  for (const auto &place : places_)
    if (place.to_be_killed != nullptr) place.to_be_killed->set();
}

Status Server::check(std::size_t index) const {
  if (index < places_.size()) return {};
  return Error{Code::kInvalidArgument, fmt::format("there is no server {}: the run has {}", index, places_.size())};
}

// --- a server's life ----------------------------------------------------------------------------------------------------

nssi::Outcome<void> Server::JOIN(nssi::Request &request, const server &joining) {
  nssi::Event to_be_killed(runtime_);
  if (auto status = take_place(joining, request.caller(), to_be_killed); !status.ok()) return status;
  changed_();
  auto status = request.wait(to_be_killed);
  {
    const std::lock_guard lock(mutex_);
    places_[joining.index].to_be_killed = nullptr;
  }
  if (is_over_) return Error{Code::kUnavailable, "the run is over", nessie::Scope::kService};
  return status;
}

Status Server::take_place(const server &joining, nssi::PeerId peer, nssi::Event &to_be_killed) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return Error{Code::kUnavailable, "the run is over", nessie::Scope::kService};
  if (auto status = check(joining.index); !status.ok()) return status;
  auto &place = places_[joining.index];
  if (!place.state.url.empty())
    return Error{Code::kExists, fmt::format("server {} has joined already, on {}", joining.index, place.state.host)};
  if (joining.at.empty()) return Error{Code::kInvalidArgument, "a server has to say where it is"};
  place.state.url = joining.at, place.state.host = joining.host, place.state.agent = joining.agent;
  place.peer = peer, place.to_be_killed = &to_be_killed;
  tell_waiting();
  return {};
}

void Server::peer_lost(nssi::PeerId peer) {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      auto &state = places_[i].state;
      if (!places_[i].peer || *places_[i].peer != peer || state.its_end) continue;
      state.is_lost = true;
      state.its_end = std::make_shared<ending>(
          ending{static_cast<std::uint32_t>(i), fmt::format("on {} is lost, with its agent", state.host), {}, {}});
    }
  }
  changed_();
}

nssi::Outcome<void> Server::MPI_IS(nssi::Request &, std::uint32_t index, const stage &now) {
  {
    const std::lock_guard lock(mutex_);
    if (auto status = check(index); !status.ok()) return status;
    auto &state = places_[index].state;
    (now == stage::OVER ? state.mpi_is_over : state.mpi_has_begun) = true;
  }
  changed_();
  return {};
}

nssi::Outcome<void> Server::ENDED(nssi::Request &, const ending &end) {
  {
    const std::lock_guard lock(mutex_);
    if (auto status = check(end.index); !status.ok()) return status;
    auto &state = places_[end.index].state;
    state.its_end = std::make_shared<ending>(end);
    if (state.url.empty() && !why_not_) why_not_ = fmt::format("staging server {} {}", end.index, end.how);
    tell_waiting();
  }
  changed_();
  return {};
}

nssi::Outcome<void> Server::RESTARTED(nssi::Request &, const ending &end) {
  {
    const std::lock_guard lock(mutex_);
    if (auto status = check(end.index); !status.ok()) return status;
    places_[end.index].state.restarts.push_back(std::make_shared<ending>(end));
  }
  changed_();
  return {};
}

nssi::Outcome<void> Server::IS_BACK(nssi::Request &, std::uint32_t index) {
  {
    const std::lock_guard lock(mutex_);
    if (auto status = check(index); !status.ok()) return status;
    places_[index].state.returns = places_[index].state.restarts.size();
  }
  changed_();
  return {};
}

// --- where all are ------------------------------------------------------------------------------------------------------

nssi::Outcome<servers> Server::SERVERS(nssi::Request &request) {
  for (;;) {
    nssi::Event changed(runtime_);
    std::list<nssi::Event *>::iterator at;
    {
      const std::lock_guard lock(mutex_);
      if (auto now = answer()) return *std::move(now);
      at = waiting_.insert(waiting_.end(), &changed);
    }
    const auto status = request.wait(changed);
    const std::lock_guard lock(mutex_);
    waiting_.erase(at);
    if (!status.ok()) return status.error();
  }
}

/// Nothing: it is not known yet.
std::optional<nssi::Outcome<servers>> Server::answer() const {
  servers all;
  for (const auto &place : places_) {
    if (place.state.url.empty() && why_not_) return Error{Code::kNotFound, *why_not_, nessie::Scope::kService};
    if (place.state.url.empty()) return std::nullopt;
    all.urls.push_back(place.state.url);
  }
  return all;
}

void Server::tell_waiting() {
  for (auto *event : waiting_) event->set();
}

}  // namespace launch
