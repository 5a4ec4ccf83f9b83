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

constexpr std::chrono::milliseconds kAttemptPause{20}, kGlance{50};
constexpr std::chrono::seconds kLookForPartner{1};
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
  const FileGate::Alone alone(opening_replicated_);
  if (replicated_.journal) return {};
  auto opened = open_copy(deadline, false);
  if (!opened.ok()) return opened.error();
  replicated_ = *std::move(opened);
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

/// The partner is gone, with all that it kept: files are logged instead, until it is back and keeps a new copy.
void Server::renew_replicated() {
  if (finishing_ || std::exchange(is_renewing_, true)) return;
  runtime_.spawn([this] {
    for (const auto &file : closing_) drainer_.hasten(*file);
    (void)await_recovered();
    auto deadline = Deadline::in(options_.client_timeout);
    while (!finishing_) {
      if (!has_copies() && open_logged().ok()) (void)move_all(*logged_);
      if (!has_copies() && renew_copy(deadline).code() == Code::kCancelled) break;
      while (has_copies() && move_all(*replicated_.journal)) continue;
      if (has_copies()) break;
      deadline = Deadline::in(kLookForPartner);
      if (!pause(runtime_, deadline).ok()) break;
    }
    is_renewing_ = false;
  });
}

Status Server::renew_copy(Deadline deadline) {
  auto opened = open_copy(deadline, true);
  if (!opened.ok()) return opened.error();
  former_.push_back(std::exchange(replicated_, *std::move(opened)).journal);
  return {};
}

/// Of all files of which there is to be a second copy. Suspends the fiber until that is done, or cannot be done. False:
/// none was elsewhere.
bool Server::move_all(Journal &to) {
  std::vector<File> files;
  const auto add = [&](const File &file) {
    const bool is_elsewhere = file->journal != nullptr && file->journal != &to;
    if (is_elsewhere && file->durability == Durability::kReplicated && !file->ended) files.push_back(file);
  };
  for (const auto &[token, file] : files_) add(file);
  std::ranges::for_each(closing_, add);
  const auto left = std::make_shared<std::size_t>(files.size());
  for (const auto &file : files)
    runtime_.spawn([this, file, left, &to] {
      const FileGate::Alone alone(file->gate);
      (void)move(*file, to);
      --*left;
      moved_.notify_all();
    });
  while (*left > 0 && moved_.wait().ok()) continue;
  return !files.empty();
}

/// All that was written to the file comes to the disk, and what is needed to go on with it to another journal. Who
/// calls this has the file alone. False: that journal has failed.
bool Server::move(OpenFile &file, Journal &to) {
  auto &from = *file.journal;
  if (&from == &to || file.ended) return true;
  drainer_.flush(file, PageState::kUrgent);
  file.remember(sync_to_disk(file));
  if (to.has(file.token)) (void)to.note_moved(file.token);  // it was there before, and what was noted then is older
  (void)note_all(file, to);                                 // await_written() tells
  note_clients(to, &file);
  if (!to.await_written().ok()) return false;
  file.journal = &to;
  (void)from.note_moved(file.token);
  moved_.notify_all();
  return true;
}

/// Suspends the fiber until another journal has what was noted of a file in one that has failed. False: none has.
bool Server::await_moved(OpenFile &file, const Journal &lost) {
  if (file.durability != Durability::kReplicated) return false;
  renew_replicated();
  while (file.journal == &lost && !file.ended) {
    const bool may_be_moved = open_logged().ok() && logged_->is_whole() && logged_.get() != &lost;
    if (!may_be_moved || moved_.wait(Deadline::in(kGlance)).code() == Code::kCancelled) return false;
  }
  return file.journal != &lost;
}

}  // namespace staging
