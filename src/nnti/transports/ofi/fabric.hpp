// SPDX-License-Identifier: BSD-3-Clause
// libfabric's objects: one address vector, completion queue and RDM endpoint for the whole transport, in a domain.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <nessie/result.hpp>
#include <nnti/nnti.hpp>

#include "nnti/transports/ofi/domain.hpp"
#include "nnti/transports/ofi/retirement.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nnti::ofi {

/// As nnti::prepare_environment.
void prepare_environment();

/// The provider and address to use, as the settings nnti.ofi.provider and nnti.ofi.address say, or the best there is:
/// verbs, cxi, efa, psm3, tcp; an address that other nodes can reach before the loopback. kUnsupported, with the
/// reason.
Result<Info> choose_info(const nessie::Config &config);

/// What libfabric offers here, each with a word on whether it is the one that `chosen` uses and, if not, why.
std::vector<Fact> list_providers(const nessie::Config &config, const fi_info *chosen);

class Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> open(const nessie::Config &config);
  ~Fabric();

  const fi_info &info() const { return *info_; }
  std::string provider() const { return info_->fabric_attr->prov_name; }
  /// It moves data by the sockets that any process can have.
  bool has_only_tcp() const;
  /// It crashes if a connection is closed in the middle of a read: see sockets.hpp.
  bool must_end_reads() const;
  /// The numeric IP address of the bootstrap.
  const std::string &host() const { return host_; }
  const std::vector<std::byte> &name() const { return name_; }
  fid_ep *endpoint() const { return endpoint_.get(); }
  fid_cq *queue() const { return queue_.get(); }
  /// Readable when the queue has something, after may_block() said true; -1 if the provider has none.
  int wait_fd() const { return wait_fd_; }
  bool may_block();
  /// What the endpoint writes into, or reads, until it is closed: while it closes, too.
  void keep(std::shared_ptr<void> reached) { reached_.push_back(std::move(reached)); }

  /// Makes the peer with that name addressable; one reference.
  Result<fi_addr_t> add_peer(const std::vector<std::byte> &name);
  /// Gives a reference back. With the last one, kNow: the provider's connection is closed, and everything in flight to
  /// or from the peer ends; kLater: some time after, if nobody connects again (the peer may be about to).
  enum class Removal { kNow, kLater };
  void remove_peer(const std::vector<std::byte> &name, Removal removal);
  /// With the next remove_peer() nobody has a reference any more.
  bool is_last_user(const std::vector<std::byte> &name) const;

  /// What local memory is registered with for transfers; null where the provider needs none.
  RegistrationCache *cache() { return domain_->cache(); }
  /// Deregisters what has become useless; for when there is nothing else to do.
  void collect_registrations() {
    if (auto *kept = cache()) kept->collect();
  }
  /// A registration of its own, as Domain::register_memory.
  Result<MemoryKey> register_memory(std::span<const std::byte> memory, std::uint64_t access) {
    return domain_->register_memory(memory, access);
  }
  Fact describe_cache() const { return domain_->describe_cache(); }
  /// What a peer gives as the address of the first byte of `memory`.
  std::uint64_t base_address(std::span<std::byte> memory) const;

 private:
  Status open_objects();
  Status open_queue();
  Status open_endpoint();
  Status find_host();
  void expire_peers();

  struct Peer {
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::size_t references = 0;
    nessie::Deadline expires = nessie::Deadline::never();
  };

  Info info_;
  std::unique_ptr<Retirement> retirement_;  ///< if this process's endpoints reach into each other
  std::shared_ptr<Domain> domain_;
  Fid<fid_av> addresses_;
  Fid<fid_cq> queue_;
  std::vector<std::shared_ptr<void>> reached_;
  Fid<fid_ep> endpoint_;
  int wait_fd_ = -1;
  std::string host_;
  std::vector<std::byte> name_;
  std::map<std::vector<std::byte>, Peer> peers_;
};

}  // namespace nnti::ofi
