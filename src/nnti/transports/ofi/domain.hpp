// SPDX-License-Identifier: BSD-3-Clause
// libfabric's fabric and domain: what memory is registered with, and, where the provider wants local memory registered,
// the cache of those registrations.
//
// Threads: a domain that has a cache is shared by all endpoints of the process that use the same provider, interface
// and limits, whatever thread they are on: what one of them has registered serves the others. (Not where a registration
// belongs to one endpoint, FI_MR_ENDPOINT: there each has its own.) A domain without a cache is its endpoint's alone.
#pragma once

#include "nnti/registration_cache/registration_cache.hpp"
#include "nnti/transports/ofi/library.hpp"

#include <base/config.hpp>
#include <nessie/result.hpp>
#include <nnti/nnti.hpp>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

/// The error of a libfabric call that returned `code` (negative or positive).
Error fabric_error(std::string_view what, long code);

/// A region that the provider knows.
struct MemoryKey {
  Fid<fid_mr> mr;
  void *descriptor() const { return mr ? fi_mr_desc(mr.get()) : nullptr; }
};

/// A region that the provider knows for this process's own transfers: what the cache keeps. Its key is nobody's.
class LocalRegistration final : public Registration {
 public:
  explicit LocalRegistration(MemoryKey key) : key_(std::move(key)) {}
  void *descriptor() const { return key_.descriptor(); }

 private:
  MemoryKey key_;
};

/// Whether, and why, local memory is registered, and what is kept of that.
struct LocalMemory {
  bool registered = false;  ///< what the provider transfers from and to must be registered
  bool forced = false;      ///< by nnti.ofi.mr_local, although the provider needs none
  CacheLimits limits;

  /// As the provider of `info` and the settings nnti.ofi.mr_local and nnti.registration_cache* say. kInvalidArgument.
  static Result<LocalMemory> from(const fi_info &info, const nessie::Config &config);
  /// A domain for it may be shared.
  bool shared_with(const fi_info &info) const { return registered && !(info.domain_attr->mr_mode & FI_MR_ENDPOINT); }
};

class Domain final : private Registrar {
 public:
  /// The process's domain for `info` and `local`, or one of the caller's own. `info` says which threads use it.
  static Result<std::shared_ptr<Domain>> open(const fi_info &info, const LocalMemory &local);
  ~Domain() override;

  fid_fabric *fabric() const { return fabric_.get(); }
  fid_domain *domain() const { return domain_.get(); }

  /// Where registrations belong to an endpoint, to this one; end_endpoint() before it closes.
  void begin_endpoint(fid_ep &endpoint);
  void end_endpoint();

  /// A registration of its own, for exactly this memory. The only ones whose keys may be given to peers: such a key
  /// ends with its registration, and reaches nothing else.
  Result<MemoryKey> register_memory(std::span<const std::byte> memory, std::uint64_t access);
  /// For leases of LocalRegistrations; null: the provider needs none.
  RegistrationCache *cache() { return cache_ ? &*cache_ : nullptr; }

  /// For `nessie info`: whether the cache is used, why so, and what it holds.
  Fact describe_cache() const;

 private:
  Domain(Info info, const LocalMemory &local) : info_(std::move(info)), local_(local) {}
  static Result<std::shared_ptr<Domain>> open_another(const fi_info &info, const LocalMemory &local);
  Status open_objects();
  Status bind(fid_mr &mr);
  Result<std::unique_ptr<Registration>> register_pages(AddressRange range, std::uint64_t access) override;

  Info info_;
  LocalMemory local_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  fid_ep *endpoint_ = nullptr;
  std::optional<RegistrationCache> cache_;
};

}  // namespace nnti::ofi
