// SPDX-License-Identifier: BSD-3-Clause
// A second copy of what has been acknowledged, with another server.
#include <services/staging/server/server.hpp>

#include <service/connection.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <limits>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::service::connect_in_fiber;
using nessie::service::pause;

Status Server::keep_block(Request &request, const BlockArgs &block) { return replicas_.keep(request, block); }

Result<KeptResult> Server::kept(Request &request, std::uint32_t of) { return replicas_.kept(request, of); }

Result<std::uint64_t> Server::read_block(Request &request, const BlockArgs &block) {
  return replicas_.read(request, block);
}

Status Server::release_block(Request &, const BlockArgs &block) {
  replicas_.release(block);
  return {};
}

namespace {

constexpr std::chrono::milliseconds kAttemptPause{20};
/// What writes leave of a log's room is for notes of what makes room, which cannot wait.
constexpr std::uint64_t kParts = 4, kPartsForWrites = 3;

/// What of a URL says which node it is: that of its network, or, where there is none, of its shared memory.
std::string node_of(const std::string &url) {
  for (const char *scheme : {"tcp://", "shm://"}) {
    const auto at = url.find(scheme);
    if (at == std::string::npos) continue;
    const auto begin = at + 6;
    return url.substr(begin, url.find_first_of(":/;|", begin) - begin);
  }
  return {};
}

}  // namespace

/// The server that keeps the second copy of a server's: the next one of another node, or the next one. Itself: there is
/// none.
std::size_t Server::partner_of(std::size_t server) const {
  const auto count = servers_.size();
  for (const bool elsewhere : {true, false})
    for (std::size_t step = 1; step < count; ++step) {
      const auto other = (server + step) % count;
      if (!elsewhere || node_of(servers_[other]) != node_of(servers_[server])) return other;
    }
  return server;
}

/// Empty: there is none, or it is not known where all servers are.
std::string Server::partner() const {
  const auto partner = servers_.size() != options_.servers ? options_.index : partner_of(options_.index);
  return partner != options_.index ? servers_[partner] : "";
}

/// Servers with the same partner.
std::uint32_t Server::sharers() const {
  std::uint32_t sharers = 0;
  for (std::size_t server = 0; server < servers_.size(); ++server)
    sharers += partner_of(server) == partner_of(options_.index) ? 1 : 0;
  return sharers;
}

/// The journal that the partner keeps; as long as that is about to be started again, until the deadline.
Result<Server::Copy> Server::open_copy(Deadline deadline, bool anew) {
  const auto url = partner();
  if (url.empty())
    return Error{Code::kUnsupported,
                 "'replicated' needs two staging servers at least: run with --servers 2, or keep files 'logged'"};
  for (;;) {
    auto copy = try_to_open_copy(url, anew);
    if (copy.ok() || copy.code() != Code::kPeerLost || deadline.passed() || finishing_) return copy;
    if (auto status = pause(runtime_, Deadline::in(kAttemptPause)); !status.ok()) return status.error();
  }
}

Result<Server::Copy> Server::try_to_open_copy(const std::string &url, bool anew) {
  const auto peer = connect_in_fiber(runtime_, url, Deadline::in(options_.client_timeout));
  if (!peer.ok()) return peer.error();
  auto replica = open_replica(runtime_, {options_.index, url, *peer, anew, sharers()});
  if (!replica.ok()) return replica.error();
  const auto for_writes = replica->most_bytes / kParts * kPartsForWrites;
  auto journal = Journal::open(runtime_, budget_, std::move(replica->store), {for_writes / 2, for_writes});
  if (!journal.ok()) return journal.error();
  return Copy{*std::move(journal), *peer};
}

Status Server::open_replicated(Deadline deadline) {
  if (replicated_.journal) return {};
  auto opened = open_copy(deadline, false);
  if (!opened.ok()) return opened.error();
  if (!replicated_.journal) replicated_ = *std::move(opened);
  return {};
}

/// What this server has had another one keep is not needed any more, also of files that have lost something: that is
/// reported. What it keeps for others stays until that is so for them, too.
void Server::give_copies_up() {
  if (replicated_.journal) {
    nssi::CallOptions options;
    options.deadline = Deadline::in(options_.client_timeout);
    auto asked = STAGING::CURRENT::Client(runtime_, replicated_.peer)
                     .release_block_async({options_.index, 0, std::numeric_limits<std::uint64_t>::max()}, options);
    (void)asked.wait();  // one that is gone has none
  }
  const auto is_connected = [this](nssi::PeerId peer) { return std::ranges::find(peers_, peer) != peers_.end(); };
  replicas_.await_unneeded(is_connected, options_.client_timeout);
}

/// The partner is gone, with all that it kept: as soon as it is back it keeps a new copy. Nothing, if it has one
/// already, and the caller's file is only about to get there.
void Server::renew_replicated(const Journal &lost) {
  if (replicated_.journal.get() != &lost || finishing_ || std::exchange(is_renewing_, true)) return;
  runtime_.spawn([this] {
    auto opened = open_copy(Deadline::in(options_.client_timeout), true);
    is_renewing_ = false;
    if (!opened.ok()) return;  // the next write tries again
    former_.push_back(std::exchange(replicated_, *std::move(opened)).journal);
    std::vector<File> files;
    for (const auto &[token, file] : files_) files.push_back(file);
    for (const auto &file : closing_) drainer_.hasten(*file);
    for (const auto &file : files) keep_anew(*file);
  });
}

/// Puts what a file has into it, and what comes into the new copy.
void Server::keep_anew(OpenFile &file) {
  const FileGate::Alone alone(file.gate);
  auto *journal = replicated_.journal.get();
  const bool is_elsewhere = file.journal != nullptr && file.durability == Durability::kReplicated;
  if (!is_elsewhere || file.journal == journal || file.ended) return;
  drainer_.flush(file, PageState::kUrgent);
  (void)on_io([&] { return file.native->sync_to_disk(); });
  file.journal = journal;
  (void)note_all(file);  // whoever writes is told
  for (auto &[id, client] : returning_) note_again(*journal, client);
  (void)journal->await_written();
}

}  // namespace staging
