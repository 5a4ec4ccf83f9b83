// SPDX-License-Identifier: BSD-3-Clause
// What an operation waits for: the writes that go before it, on their way or here.
#include <services/staging/server/server.hpp>

#include <base/log.hpp>

#include <pnetcdf.h>

namespace staging {

using nessie::Code;

namespace {

constexpr std::chrono::milliseconds kWriteMoment{50};
constexpr std::chrono::milliseconds kLastWords{1000};  // what has been sent is read in less

}  // namespace

/// Suspends the fiber until the writes have been carried out. False, and the file has lost data: a process died before
/// it had sent all of its own.
bool Server::await_writes(OpenFile &file, const WritesBefore &before) {
  auto progress = nessie::Clock::now();
  while (!file.writes.has(before)) {
    const auto status = file.wrote.wait(nessie::Deadline::in(kWriteMoment));
    if (status.code() == Code::kCancelled) return false;
    if (status.ok() || file.writing > 0) progress = nessie::Clock::now();
    const auto patience = peers_.empty() ? kLastWords : options_.client_timeout;
    if (nessie::Clock::now() - progress < patience) continue;
    if (!finishing_ && any_is_stopped(file)) {
      progress = nessie::Clock::now();
      continue;
    }
    nessie::log::error("{}: a process of the program ended, or stopped, before the servers had all that it wrote",
                       file.path);
    file.remember(NC_EWRITE);
    return false;
  }
  return true;
}

/// Takes out of the inboxes all that they hold now; `arrival` is called, handlers begin later. Each turn takes a part
/// of an inbox, and none takes more than so many; and who waits for an answer, which nobody gives meanwhile, sends no
/// more.
void Server::look_at_inboxes() {
  constexpr int kMostTurns = 1024;
  for (int turn = 0; turn < kMostTurns && runtime_.endpoint().progress() != 0; ++turn) continue;
}

/// Before a read: what was put before, by whatever process and through whatever handle, was in an inbox when the put
/// returned. What this process put itself has been answered, and so has everything in direct mode.
void Server::await_what_was_sent(OpenFile &file) {
  const bool others_put = file.native->writable() && (peers_.size() > 1 || !file.line->is_empty());
  if (file.is_direct || !(others_put || file.takes_turns)) return;
  look_at_inboxes();
  file.line->await_arrived();
}

}  // namespace staging
