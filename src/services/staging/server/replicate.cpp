// SPDX-License-Identifier: BSD-3-Clause
// A second copy of what has been acknowledged, with another server.
#include <services/staging/server/server.hpp>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

Status Server::keep_block(Request &request, const BlockArgs &block) { return replicas_.keep(request, block); }

Result<KeptResult> Server::kept(Request &, std::uint32_t of) { return replicas_.kept(of); }

Result<std::uint64_t> Server::read_block(Request &request, const BlockArgs &block) {
  return replicas_.read(request, block);
}

Status Server::release_block(Request &, const BlockArgs &block) {
  replicas_.release(block);
  return {};
}

namespace {

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

/// The server that keeps the second copy: the next one of another node, or the next one. Empty: there is none.
std::string Server::partner() const {
  const auto count = servers_.size();
  for (const bool elsewhere : {true, false})
    for (std::size_t step = 1; step < count; ++step) {
      const auto &other = servers_[(options_.index + step) % count];
      if (!elsewhere || node_of(other) != node_of(servers_[options_.index])) return other;
    }
  return {};
}

Status Server::open_replicated() {
  if (replicated_ && replicated_->is_whole()) return {};
  const auto url = partner();
  if (url.empty())
    return Error{Code::kUnsupported,
                 "'replicated' needs two staging servers at least: run with --servers 2, or keep files 'logged'"};
  auto store = open_replica(runtime_, options_.index, url, Deadline::in(options_.client_timeout));
  if (!store.ok()) return store.error();
  auto opened = Journal::open(runtime_, budget_, *std::move(store));
  if (!opened.ok()) return opened.error();
  if (!replicated_) replicated_ = *std::move(opened);
  return {};
}

}  // namespace staging
