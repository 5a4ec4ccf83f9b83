// SPDX-License-Identifier: BSD-3-Clause
// The log of a server, kept in the memory of another one: what is in both outlives either of them. Nessie paper,
// section 7, names this as the open question of data services. Progress thread.
#pragma once

#include <service/log/store.hpp>
#include <service/wait_queue.hpp>

#include <base/budget.hpp>
#include <nssi/nssi.hpp>
#include <staging_rpc.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace staging {

using nessie::service::LogRange;
using nessie::service::LogStore;
using nessie::service::Lsn;

/// What a server keeps for others.
class Replicas {
 public:
  /// `most_bytes`: of all together, if there is a log's least for each.
  Replicas(nssi::Runtime &runtime, nessie::Budget &budget, std::uint64_t most_bytes)
      : most_bytes_(most_bytes), account_(budget, "staging.replicas"), released_(runtime) {}
  Replicas(const Replicas &) = delete;

  /// Pulls a block from its server's memory. Suspends the fiber while there is no room, which its server sees to that
  /// there is. kNoMemory: none has come.
  nessie::Status keep(nssi::Request &request, const BlockArgs &block);
  /// From now on the caller is the one whose it is.
  KeptResult kept(const nssi::Request &request, std::uint32_t of);
  /// Pushes what there is from `block.at` on.
  nessie::Result<std::uint64_t> read(nssi::Request &request, const BlockArgs &block) const;
  void release(const BlockArgs &block);
  /// Suspends the fiber until nobody needs anything of it: as long as those whose it is are connected, and for
  /// `patience` after that, in which whoever takes the place of one may come for it. `is_connected`: whether a peer is.
  void await_unneeded(const std::function<bool(nssi::PeerId)> &is_connected, std::chrono::milliseconds patience);

 private:
  struct Memory {
    void operator()(std::byte *memory) const;
  };
  struct Block {
    std::unique_ptr<std::byte[], Memory> memory;
    std::uint64_t size_bytes = 0;
  };
  struct Kept {
    nssi::PeerId owner;
    std::uint64_t bytes = 0;
    std::map<Lsn, Block> blocks;
  };
  std::uint64_t bytes_of(std::uint32_t log) const;
  void give_back(std::uint32_t log, std::uint64_t bytes);

  const std::uint64_t most_bytes_;
  nessie::Budget::Account account_;
  nessie::service::WaitQueue released_;
  std::map<std::uint32_t, Kept> logs_;
};

struct ReplicaOptions {
  std::uint32_t of = 0;       ///< whose log it is
  std::string url;            ///< of the server that keeps it,
  nssi::PeerId peer;          ///< and the connection to it, which goes with the store
  bool anew = false;          ///< what it has kept so far is dropped
  std::uint32_t sharers = 1;  ///< servers whose logs it keeps
};

/// The log of a server, kept by another one.
struct OpenedReplica {
  std::unique_ptr<LogStore> store;
  std::uint64_t most_bytes = 0;  ///< that it may have there
};

/// Within a fiber. Errors as calls'.
nessie::Result<OpenedReplica> open_replica(nssi::Runtime &runtime, const ReplicaOptions &options);

}  // namespace staging
