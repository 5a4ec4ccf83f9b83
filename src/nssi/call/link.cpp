// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/call/link.hpp>

#include <nssi/drive/core.hpp>

#include <algorithm>

namespace nssi {

namespace {

constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{250};

}  // namespace

void Links::add(std::string_view url, PeerId connection) {
  if (connection.value >= by_name_.size()) by_name_.resize(connection.value + 1);
  auto &link = by_name_[connection.value] = std::make_unique<Link>();
  link->url = url;
  link->name = link->connection = connection;
}

std::unique_ptr<Link> Links::remove(Link &link) {
  std::erase(broken_, &link);
  return std::move(by_name_[link.name.value]);
}

Link *Links::over(PeerId connection) const {
  if (auto *link = named(connection); link != nullptr && link->connection == connection) return link;
  const auto found = std::ranges::find_if(
      by_name_, [&](const auto &link) { return link != nullptr && link->connection == connection; });
  return found == by_name_.end() ? nullptr : found->get();
}

void Links::add_broken(Link &link, std::chrono::milliseconds patience) {
  broken_.push_back(&link);
  link.give_up_at = Deadline::in(patience);
  link.pause = kFirstPause;
  core_.ask_for_turn();
}

void Links::reconnect(Link &link, const Error &why, std::chrono::milliseconds patience) {
  if (std::ranges::find(broken_, &link) == broken_.end())
    add_broken(link, patience);
  else
    link.give_up_at = link.give_up_at.earlier(Deadline::in(patience));  // it was held, perhaps for longer
  link.why = why;
  link.connection = {};
  link.is_ready = false;
  link.try_at = Deadline::now();
}

void Links::hold(Link &link, std::chrono::milliseconds patience) {
  add_broken(link, patience);
  link.why = Error{Code::kTimedOut, "the other side has not said who it is", nessie::Scope::kPeer};
  link.is_ready = false;
}

void Links::set_ready(Link &link) {
  std::erase(broken_, &link);
  link.is_ready = true;
}

void Links::advance() {
  const auto broken = broken_;
  for (auto *link : broken)
    if (std::ranges::find(broken_, link) != broken_.end()) advance(*link);
  if (!broken_.empty()) core_.ask_for_turn();
}

void Links::stop_connecting() {
  for (auto *link : broken_) link->attempt.reset();
}

void Links::advance(Link &link) {
  if (link.give_up_at.passed()) return give_up(link, link.why);
  if (link.connection.value != 0) return;  // the other side has not said yet who it is
  if (!link.attempt && link.try_at.passed()) {
    auto attempt = core_.endpoint().start_connecting(link.url, link.give_up_at);
    if (!attempt.ok()) return give_up(link, attempt.error());
    link.attempt = *std::move(attempt);
  }
  auto outcome = link.attempt ? link.attempt->advance() : std::nullopt;
  if (!outcome) return;
  link.attempt.reset();
  if (outcome->ok()) return connected(link, **outcome);
  if (outcome->code() == Code::kRefused) return give_up(link, outcome->error());
  link.try_at = Deadline::in(link.pause);
  link.pause = std::min(2 * link.pause, kLongestPause);
}

void Links::connected(Link &link, PeerId connection) {
  link.connection = connection;
  core_.add_peer(connection);
  events_.on_link_connected(link);
}

/// `why` is a copy: the link ends here.
void Links::give_up(Link &link, Error why) {
  const auto ended = remove(link);
  if (link.connection.value != 0) core_.drop_peer(link.connection, why);
  events_.on_link_given_up(link, why);
}

Deadline Links::next() const {
  auto next = Deadline::never();
  for (const auto *link : broken_) {
    next = next.earlier(link->give_up_at);
    if (link->connection.value == 0) next = next.earlier(link->attempt ? link->attempt->due() : link->try_at);
  }
  return next;
}

}  // namespace nssi
