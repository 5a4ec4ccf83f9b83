// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

#include <base/crc32c.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kMoment{5};
constexpr int kSignsInTimeout = 3;     // a server is asked for a sign of life this often within the timeout
constexpr int kPartsUntilSilent = 30;  // of the timeout: one that has not answered yet is silent

Error no_sign_of_life(const std::string &url, std::chrono::milliseconds timeout) {
  return {
      Code::kTimedOut,
      fmt::format("the staging server {} gave no sign of life for {} s and was given up; it may be stopped or hang in "
                  "the file system (NESSIE_STAGING_TIMEOUT sets how long to wait)",
                  url, std::chrono::duration<double>(timeout).count()),
      nessie::Scope::kPeer};
}

}  // namespace

// Spreads files over the servers. All handles on one file have the same home: by its inode, as nodes number devices
// each in its own way.
int Client::Impl::home_of(const FileIdentity &identity) const {
  return static_cast<int>((identity.inode * 0x9E3779B97F4A7C15u >> 32) % servers.size());
}

Status Client::Impl::await(const std::function<Status(Deadline)> &settle, int server, Deadline deadline) {
  for (const auto asked = at(server).peer;;) {
    auto status = [&, until = next_look_at(server).earlier(deadline)] {
      const Unlocked others_go_on(mutex);
      return settle(until);
    }();
    heard = status.ok() ? Deadline::in(kMoment) : Deadline::now();
    if (status.ok() || status.code() != Code::kTimedOut || deadline.passed()) return status;
    if (at(server).peer != asked) return Error{Code::kPeerLost, "another server has taken its place"};
    if (alive(server)) continue;
    give_up(server);
    return no_sign_of_life(at(server).url, timeout);
  }
}

Status Client::Impl::ping(int server, std::chrono::milliseconds patience) {
  auto sign = ask_for_sign(server, patience);
  const Unlocked others_go_on(mutex);
  return sign.answer.settle(sign.until);
}

/// When a server that does not answer is asked for a sign of life; or, if it was asked for one already, when that is
/// late.
Deadline Client::Impl::next_look_at(int server) const {
  const auto look = Deadline::in(timeout / kSignsInTimeout);
  const auto &sign = servers[static_cast<std::size_t>(server)].sign;
  return sign ? look.earlier(sign->until) : look;
}

Client::Impl::Sign Client::Impl::ask_for_sign(int server, std::chrono::milliseconds patience) {
  nssi::CallOptions options;
  options.deadline = Deadline::in(patience);
  return {at(server).stub.ping_async(options), *options.deadline};
}

/// For a sign of life, and not long ago.
bool Client::Impl::was_asked(int server) const {
  const auto &sign = servers[static_cast<std::size_t>(server)].sign;
  return sign && !Deadline::at(sign->until.when() + timeout / kSignsInTimeout).passed();
}

/// While it is silent the others are asked for a sign of life, too: several that are gone are waited for together.
bool Client::Impl::alive(int server) {
  if (at(server).lost) return false;
  const auto patience = timeout * (kSignsInTimeout - 1) / kSignsInTimeout;
  auto sign = was_asked(server) ? *std::move(at(server).sign) : ask_for_sign(server, patience);
  at(server).sign.reset();
  const auto is_silent = [&](Deadline until) {
    const Unlocked others_go_on(mutex);
    return sign.answer.settle(until).code() == Code::kTimedOut;
  };
  if (!is_silent(Deadline::in(timeout / kPartsUntilSilent).earlier(sign.until))) return true;
  for (int other = 0; other < count(); ++other)
    if (other != server && !at(other).lost && !was_asked(other)) at(other).sign = ask_for_sign(other, patience);
  return !is_silent(sign.until);
}

bool Client::Impl::has_died(int server) {
  auto &asked = at(server);
  if (asked.died || asked.lost) return asked.died;
  const auto of = asked.peer;
  asked.died = ping(server, timeout).code() == Code::kPeerLost && !await_return(server, of);
  return asked.died;
}

bool Client::all_died() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->heard.passed()) return false;
  for (int server = 0; server < impl_->count(); ++server)
    if (!impl_->has_died(server)) return false;
  return true;
}

void Client::Impl::give_up(int server) {
  auto &given_up = at(server);
  if (!given_up.lost) runtime->disconnect(given_up.peer);
  given_up.lost = true;
}

void Client::Impl::give_all_up() {
  const std::lock_guard lock(mutex);
  for (int server = 0; server < count(); ++server) give_up(server);
}

Result<int> Client::Impl::first_error(Answers &answers) {
  int nc_error = 0;
  Status failure;
  for (auto &[server, asked] : answers) {
    auto result = answer(std::move(asked), server);
    if (!result.ok() && failure.ok()) failure = result.error();
    if (result.ok() && nc_error == 0) nc_error = result->nc_error;
  }
  if (!failure.ok()) return failure.error();
  return nc_error;
}

void Client::Impl::finish_one() {
  if (messages.empty()) {
    if (!awaited.empty()) changed.wait(mutex);
    return;
  }
  auto oldest = std::move(messages.front());
  messages.pop_front();
  finish(std::move(oldest));
}

void Client::Impl::finish(std::unique_ptr<Message> message) {
  awaited.push_back(message.get());
  auto &outcome = *message->outcome;
  auto answered = answer_of(*message);
  while (is_lost(answered) && await_return(message->server, message->of)) {
    if (message->of != at(message->server).peer) send(*message);
    answered = answer_of(*message);
  }
  at(message->server).unanswered.erase(message->args.number);
  outcome.note_answer(answered);
  const std::byte *from = message->destinations.empty() ? nullptr : message->buffer.bytes().data();
  for (auto place : message->destinations) {
    if (answered.ok()) std::memcpy(place.data(), from, place.size());
    from += place.size();
  }
  --outcome.pending;
  outcome.borrowed -= message->borrows ? 1 : 0;
  if (message->is_copy) copy_buffers->give_back(std::move(message->buffer));
  std::erase(awaited, message.get());
  changed.notify_all();
}

nssi::Outcome<NcResult> Client::Impl::answer_of(Message &message) {
  message.is_waited_for = true;
  auto answered = answer_of(message.answer, message.server, Deadline::never());
  message.is_waited_for = false;
  if (at(message.server).is_returning) changed.notify_all();
  return answered;
}

void Client::Impl::finish(const int &left) {
  if (left > 0) hasten();
  while (left > 0) finish_one();
}

/// Has the servers carry out what this process is about to wait for.
void Client::Impl::hasten() {
  for (int server = 0; server < count(); ++server) {
    const auto last = std::find_if(messages.rbegin(), messages.rend(),
                                   [=](const auto &message) { return message->server == server; });
    if (last != messages.rend() && !(*last)->is_urgent) (void)ask(server, &Stub::hasten_async);
  }
}

std::uint32_t Client::Impl::copy(std::byte *to, std::span<const std::byte> from, std::uint32_t before) const {
  if (checks) return nessie::copy_crc32c(to, from.data(), from.size(), before);
  std::memcpy(to, from.data(), from.size());
  return 0;
}

/// What is behind the program's back must be in the servers' inboxes.
void Client::Impl::finish_unsent() {
  for (const auto &server : servers)
    while ((!messages.empty() || !awaited.empty()) && runtime->has_unsent(server.peer)) finish_one();
}

/// What became of the writes to a file; forgets files that nobody writes to, and whose writes all went well.
std::shared_ptr<Outcome> Client::Impl::outcome_of(FileToken file) {
  const auto is_over = [](const auto &old) { return old.second->is_fine() && old.second.use_count() == 1; };
  if (!written.contains(file)) std::erase_if(written, is_over);
  auto &outcome = written[file];
  if (!outcome) outcome = std::make_shared<Outcome>();
  return outcome;
}

}  // namespace staging
