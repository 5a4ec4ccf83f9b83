// SPDX-License-Identifier: BSD-3-Clause
// libfabric's objects: one domain, address vector, completion queue and RDM endpoint for the whole transport.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <nessie/result.hpp>
#include <nnti/nnti.hpp>

#include "nnti/transports/ofi/library.hpp"
#include "nnti/transports/ofi/retirement.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nnti::ofi {

using nessie::Error;
using nessie::Result;
using nessie::Status;

struct CloseFid {
  template <class T> void operator()(T *object) const { fi_close(&object->fid); }
};
template <class T> using Fid = std::unique_ptr<T, CloseFid>;
struct FreeInfo {
  void operator()(fi_info *info) const { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// The provider and address to use, as the settings nnti.ofi.provider and nnti.ofi.address say, or the best there is:
/// verbs, cxi, efa, psm3, tcp; an address that other nodes can reach before the loopback. kUnsupported, with the
/// reason.
Result<Info> choose_info(const nessie::Config &config);

/// What libfabric offers here, each with a word on whether it is the one that `chosen` uses and, if not, why.
std::vector<Fact> list_providers(const nessie::Config &config, const fi_info *chosen);

/// The error of a libfabric call that returned `code` (negative or positive).
Error fabric_error(std::string_view what, long code);

/// A region that the provider knows.
struct MemoryKey {
  Fid<fid_mr> mr;
  void *descriptor() const { return mr ? fi_mr_desc(mr.get()) : nullptr; }
};

class Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> open(const nessie::Config &config);
  ~Fabric();

  const fi_info &info() const { return *info_; }
  std::string provider() const { return info_->fabric_attr->prov_name; }
  /// The numeric IP address of the bootstrap.
  const std::string &host() const { return host_; }
  const std::vector<std::byte> &name() const { return name_; }
  fid_ep *endpoint() const { return endpoint_.get(); }
  fid_cq *queue() const { return queue_.get(); }
  /// Readable when the queue has something, after may_block() said true; -1 if the provider has none.
  int wait_fd() const { return wait_fd_; }
  bool may_block();

  /// Makes the peer with that name addressable; one reference.
  Result<fi_addr_t> add_peer(const std::vector<std::byte> &name);
  /// Gives a reference back. With the last one, kNow: the provider's connection is closed, and everything in flight to
  /// or from the peer ends; kLater: some time after, if nobody connects again (the peer may be about to).
  enum class Removal { kNow, kLater };
  void remove_peer(const std::vector<std::byte> &name, Removal removal);

  bool needs_local_registration() const { return info_->domain_attr->mr_mode & FI_MR_LOCAL; }
  Result<MemoryKey> register_memory(std::span<std::byte> memory, std::uint64_t access);
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
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  Fid<fid_cq> queue_;
  Fid<fid_ep> endpoint_;
  int wait_fd_ = -1;
  std::string host_;
  std::vector<std::byte> name_;
  std::map<std::vector<std::byte>, Peer> peers_;
};

}  // namespace nnti::ofi
