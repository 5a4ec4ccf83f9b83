// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/domain.hpp"

#include <base/credential.hpp>

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <new>

namespace nnti::ofi {

namespace {

using nessie::Code;

/// The domains of this process that are shared.
class Domains {
 public:
  /// Null: there is none (any more).
  std::shared_ptr<Domain> find(const std::string &name) {
    std::lock_guard lock(mutex_);
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second.lock();
  }
  /// `domain`, or the one that another thread has added meanwhile.
  std::shared_ptr<Domain> add(const std::string &name, const std::shared_ptr<Domain> &domain) {
    std::lock_guard lock(mutex_);
    auto &present = by_name_[name];
    if (auto other = present.lock()) return other;
    present = domain;
    return domain;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Domain>> by_name_;
};

alignas(Domains) std::byte domains_place[sizeof(Domains)];

/// A forked child begins with none, in the same place and whatever state its parent's were in. Fork takes no lock
/// instead, for the reason that the registration cache takes none (cache_forks.cpp): memory is allocated under it.
Domains &domains() {
  static auto *all = new (domains_place) Domains;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { new (domains_place) Domains; });
  (void)registered;
  return *all;
}

/// Alike for endpoints that may share a domain. A forked child opens its own: its parent's are of no use to it.
std::string name_of(const fi_info &info, const LocalMemory &local) {
  const auto text = [](const char *name) { return name == nullptr ? "" : name; };
  return fmt::format("{}|{}|{}|{}|{}|{}", text(info.fabric_attr->prov_name), text(info.fabric_attr->name),
                     text(info.domain_attr->name), local.limits.regions, local.limits.bytes, ::getpid());
}

std::uint64_t any_key(std::size_t key_bytes) {
  const auto key = nessie::random_u64();
  return key_bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * key_bytes)) - 1);
}

}  // namespace

Error fabric_error(std::string_view what, long code) {
  const int number = static_cast<int>(code < 0 ? -code : code);
  const auto kind = number == FI_ENOMEM                           ? Code::kNoMemory
                    : number == FI_ENODATA || number == FI_ENOSYS ? Code::kUnsupported
                                                                  : Code::kIo;
  return {kind, fmt::format("{}: {}", what, library().strerror(number)), nessie::Scope::kOperation, number};
}

Result<LocalMemory> LocalMemory::from(const fi_info &info, const nessie::Config &config) {
  LocalMemory local;
  const auto wanted = config.get_or("nnti.ofi.mr_local", "auto");
  if (wanted != "auto" && wanted != "on")
    return Error{Code::kInvalidArgument, "nnti.ofi.mr_local is auto (as the provider demands) or on"};
  const bool demanded = info.domain_attr->mr_mode & FI_MR_LOCAL;
  local.registered = demanded || wanted == "on";
  local.forced = local.registered && !demanded;
  auto limits = CacheLimits::from(config);
  if (!limits.ok()) return limits.error();
  local.limits = *limits;
  return local;
}

// --- opening ------------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<Domain>> Domain::open(const fi_info &info, const LocalMemory &local) {
  if (!local.shared_with(info)) return open_another(info, local);
  const auto name = name_of(info, local);
  if (auto present = domains().find(name)) return present;
  auto another = open_another(info, local);
  if (!another.ok()) return another.error();
  return domains().add(name, *another);
}

Result<std::shared_ptr<Domain>> Domain::open_another(const fi_info &info, const LocalMemory &local) {
  Info own(library().dupinfo(&info));
  if (!own) return Error{Code::kNoMemory, "out of memory"};
  std::shared_ptr<Domain> domain(new Domain(std::move(own), local));
  if (auto status = domain->open_objects(); !status.ok()) return status.error();
  return domain;
}

Status Domain::open_objects() {
  fid_fabric *fabric = nullptr;
  if (int rc = library().fabric(info_->fabric_attr, &fabric, nullptr); rc != 0)
    return fabric_error("cannot open the fabric", rc);
  fabric_.reset(fabric);
  fid_domain *domain = nullptr;
  if (int rc = fi_domain(fabric, info_.get(), &domain, nullptr); rc != 0)
    return fabric_error("cannot open the fabric's domain", rc);
  domain_.reset(domain);
  if (local_.registered) cache_.emplace(static_cast<Registrar &>(*this), local_.limits);
  return {};
}

Domain::~Domain() = default;

void Domain::begin_endpoint(fid_ep &endpoint) {
  if (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) endpoint_ = &endpoint;
}

void Domain::end_endpoint() {
  if (endpoint_ != nullptr && cache_) cache_->clear();
  endpoint_ = nullptr;
}

// --- memory -------------------------------------------------------------------------------------------------------------

Result<MemoryKey> Domain::register_memory(std::span<const std::byte> memory, std::uint64_t access) {
  constexpr int kAttempts = 16;  // at a key that nothing else has, where keys are short
  fid_mr *mr = nullptr;
  int rc = -FI_ENOKEY;
  for (int i = 0; i < kAttempts && rc == -FI_ENOKEY; ++i)
    rc = fi_mr_reg(domain(), memory.data(), memory.size(), access, 0, any_key(info_->domain_attr->mr_key_size), 0, &mr,
                   nullptr);
  if (rc != 0) return fabric_error("the fabric cannot register this memory", rc);
  MemoryKey key{Fid<fid_mr>(mr)};
  if (auto status = bind(*mr); !status.ok()) return status.error();
  return key;
}

Status Domain::bind(fid_mr &mr) {
  if (!(info_->domain_attr->mr_mode & FI_MR_ENDPOINT)) return {};
  if (endpoint_ == nullptr) return Error{Code::kInternal, "memory is registered before there is an endpoint"};
  if (int rc = fi_mr_bind(&mr, &endpoint_->fid, 0); rc != 0)
    return fabric_error("cannot bind memory to the endpoint", rc);
  if (int rc = fi_mr_enable(&mr); rc != 0) return fabric_error("cannot enable registered memory", rc);
  return {};
}

Result<std::unique_ptr<Registration>> Domain::register_pages(AddressRange range, std::uint64_t access) {
  auto key = register_memory({reinterpret_cast<const std::byte *>(range.begin), range.size_bytes()}, access);
  if (!key.ok()) return key.error();
  return std::unique_ptr<Registration>(std::make_unique<LocalRegistration>(std::move(*key)));
}

// --- for people ---------------------------------------------------------------------------------------------------------

Fact Domain::describe_cache() const {
  constexpr std::size_t kMib = 1 << 20;
  const char *provider = info_->fabric_attr->prov_name;
  if (!cache_)
    return {"registration cache", fmt::format("not used: the provider {} transfers memory that is not registered; "
                                              "nnti.ofi.mr_local = on registers it all the same",
                                              provider)};
  const auto why = local_.forced ? std::string("nnti.ofi.mr_local is on")
                                 : fmt::format("the provider {} transfers registered memory only", provider);
  if (local_.limits.keep_nothing())
    return {"registration cache", fmt::format("off, by its settings; each transfer registers: {}", why)};
  if (!cache_->keeps_registrations())
    return {"registration cache",
            fmt::format("off: changes of this process's memory cannot be seen; each transfer registers: {}", why)};
  const auto now = cache_->statistics();
  return {"registration cache",
          fmt::format("used: {}; {} of {} regions, {} of {} MiB", why, now.regions, local_.limits.regions,
                      (now.bytes + kMib - 1) / kMib, local_.limits.bytes / kMib)};
}

}  // namespace nnti::ofi
