// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/fabric.hpp"

#include "nnti/bootstrap/network_address.hpp"
#include "nnti/transports/ofi/wire.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace nnti::ofi {

/// libfabric reads these once. The first makes fi_av_remove close the connection beneath, which is how transfers with a
/// peer that is given up are ended for certain; the others keep memory small, of which rxm over tcp takes 35 MiB
/// beforehand.
void prepare_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::setenv("FI_AV_REMOVE_CLEANUP", "1", 0);
    ::setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(kMaxPostedFrameBytes).c_str(), 0);
    ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);
  });
}

namespace {

using nessie::Code;

constexpr std::array<const char *, 5> kProviders = {"verbs;ofi_rxm", "cxi", "efa", "psm3", "tcp;ofi_rxm"};
constexpr std::size_t kQueueEntries = 4096;
constexpr auto kPeerRest = std::chrono::seconds(10);

Info make_hints(const std::string &provider) {
  Info hints(library().dupinfo(nullptr));
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  return hints;
}

bool is_ip(const fi_info &info) { return info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6; }

/// The provider's best interface, or the one with the address asked for.
Info best_of(Info list, const std::string &address) {
  fi_info *best = nullptr;
  int best_rank = 0;
  for (fi_info *info = list.get(); info != nullptr; info = info->next) {
    const auto host = is_ip(*info) ? numeric_host(static_cast<const sockaddr *>(info->src_addr)) : std::string();
    const int rank = is_ip(*info) ? rank_of_host(host) : 5;
    const bool wanted = address.empty() || host.empty() || host == address;
    if (!wanted || rank <= best_rank) continue;
    best = info;
    best_rank = rank;
  }
  return Info(best ? library().dupinfo(best) : nullptr);
}

/// All interfaces of a provider.
Result<Info> find_all(const std::string &provider) {
  Info hints = make_hints(provider);
  if (!hints) return Error{Code::kNoMemory, "out of memory"};
  fi_info *found = nullptr;
  const int rc = library().getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, hints.get(), &found);
  if (rc != 0) return fabric_error(fmt::format("libfabric has no provider '{}' here", provider), rc);
  return Info(found);
}

Result<Info> ask(const std::string &provider, const std::string &address) {
  auto found = find_all(provider);
  if (!found.ok()) return found.error();
  Info best = best_of(std::move(*found), address);
  if (!best && is_down(address))
    return Error{Code::kPeerLost, fmt::format("the interface with the address {} (nnti.ofi.address) is down", address),
                 nessie::Scope::kPeer, ENETDOWN};
  if (!best)
    return Error{Code::kUnsupported,
                 fmt::format("libfabric's provider '{}' has no interface with the address '{}'", provider, address)};
  return best;
}

}  // namespace

Result<Info> choose_info(const nessie::Config &config) {
  prepare_environment();
  if (auto loaded = load_library(); !loaded.ok()) return loaded.error();
  const auto address = config.get_or("nnti.ofi.address", "");
  if (auto provider = config.get("nnti.ofi.provider")) {
    auto info = ask(*provider, address);
    if (info.ok() || provider->find(';') != std::string::npos) return info;
    auto layered = ask(*provider + ";ofi_rxm", address);
    return layered.ok() ? std::move(layered) : std::move(info);
  }
  std::optional<Error> last;
  for (const char *provider : kProviders) {
    auto info = ask(provider, address);
    if (info.ok()) return info;
    last = info.error();
  }
  return *last;
}

namespace {

/// "10.0.0.7 (eth0)".
std::string interface_of(const fi_info &info) {
  const auto host = is_ip(info) ? numeric_host(static_cast<const sockaddr *>(info.src_addr)) : std::string();
  const char *domain = info.domain_attr->name == nullptr ? "?" : info.domain_attr->name;
  if (!is_ip(info)) return domain;
  return fmt::format("{} ({})", host.empty() ? "link-local" : host, domain);
}

std::string verdict_on(const std::string &provider, const std::string &interface, const fi_info *chosen,
                       const nessie::Config &config) {
  if (chosen == nullptr) return "not used";
  if (provider != chosen->fabric_attr->prov_name) {
    const auto set = config.get("nnti.ofi.provider");
    return set ? fmt::format("not chosen: nnti.ofi.provider is {}", *set)
               : fmt::format("not chosen: {} comes before it", chosen->fabric_attr->prov_name);
  }
  if (interface == interface_of(*chosen)) return "chosen";
  if (interface.starts_with("link-local")) return "not chosen: its address is valid on one link only";
  if (auto address = config.get("nnti.ofi.address")) return fmt::format("not chosen: nnti.ofi.address is {}", *address);
  return fmt::format("not chosen: {} comes before it; nnti.ofi.address chooses another", interface_of(*chosen));
}

void list_interfaces(const std::string &provider, const fi_info *chosen, const nessie::Config &config,
                     std::vector<Fact> &facts) {
  auto found = find_all(provider);
  const auto name = "provider " + provider;
  if (!found.ok()) return facts.push_back({name, found.error().message});
  std::set<std::string> seen;
  for (const fi_info *info = found->get(); info != nullptr; info = info->next)
    if (auto interface = interface_of(*info); seen.insert(interface).second)
      facts.push_back({name, fmt::format("{}: {}", interface, verdict_on(provider, interface, chosen, config))});
}

}  // namespace

std::vector<Fact> list_providers(const nessie::Config &config, const fi_info *chosen) {
  std::vector<Fact> facts;
  if (!load_library().ok()) return facts;
  prepare_environment();
  for (const char *provider : kProviders) list_interfaces(provider, chosen, config, facts);
  const std::string own = chosen == nullptr ? "" : chosen->fabric_attr->prov_name;
  if (!own.empty() && std::ranges::find(kProviders, own) == kProviders.end())
    list_interfaces(own, chosen, config, facts);
  return facts;
}

Result<std::unique_ptr<Fabric>> Fabric::open(const nessie::Config &config) {
  auto info = choose_info(config);
  if (!info.ok()) return info.error();
  std::unique_ptr<Fabric> fabric(new Fabric);
  auto local = LocalMemory::from(**info, config);
  if (!local.ok()) return local.error();
  if (local->shared_with(**info)) (*info)->domain_attr->threading = FI_THREAD_SAFE;
  fabric->info_ = std::move(*info);
  if (fabric->provider() == "shm") fabric->retirement_ = std::make_unique<Retirement>();
  auto domain = Domain::open(*fabric->info_, *local);
  if (!domain.ok()) return domain.error();
  fabric->domain_ = std::move(*domain);
  if (auto status = fabric->open_objects(); !status.ok()) return status.error();
  if (auto status = fabric->find_host(); !status.ok()) return status.error();
  return fabric;
}

Fabric::~Fabric() {
  if (domain_) domain_->end_endpoint();
  if (!retirement_) return;
  struct Objects {  // in the order in which a Fabric has them
    std::shared_ptr<Domain> domain;
    Fid<fid_av> addresses;
    Fid<fid_cq> queue;
    std::vector<std::shared_ptr<void>> reached;
    Fid<fid_ep> endpoint;
  };
  auto objects = std::make_shared<Objects>();
  *objects = {std::move(domain_), std::move(addresses_), std::move(queue_), std::move(reached_), std::move(endpoint_)};
  retirement_->keep(std::move(objects));
}

Status Fabric::open_objects() {
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  fid_av *addresses = nullptr;
  if (int rc = fi_av_open(domain_->domain(), &attributes, &addresses, nullptr); rc != 0)
    return fabric_error("cannot open an address vector", rc);
  addresses_.reset(addresses);
  if (auto status = open_queue(); !status.ok()) return status;
  return open_endpoint();
}

Status Fabric::open_queue() {
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.size = kQueueEntries;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq *queue = nullptr;
  int rc = fi_cq_open(domain_->domain(), &attributes, &queue, nullptr);
  if (rc != 0) {  // a provider without descriptors: it is polled
    attributes.wait_obj = FI_WAIT_NONE;
    rc = fi_cq_open(domain_->domain(), &attributes, &queue, nullptr);
  }
  if (rc != 0) return fabric_error("cannot open a completion queue", rc);
  queue_.reset(queue);
  if (attributes.wait_obj == FI_WAIT_FD && fi_control(&queue->fid, FI_GETWAIT, &wait_fd_) != 0) wait_fd_ = -1;
  return {};
}

Status Fabric::open_endpoint() {
  fid_ep *endpoint = nullptr;
  if (int rc = fi_endpoint(domain_->domain(), info_.get(), &endpoint, nullptr); rc != 0)
    return fabric_error("cannot open an endpoint", rc);
  endpoint_.reset(endpoint);
  domain_->begin_endpoint(*endpoint);
  if (int rc = fi_ep_bind(endpoint, &addresses_->fid, 0); rc != 0)
    return fabric_error("cannot bind the address vector", rc);
  if (int rc = fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV); rc != 0)
    return fabric_error("cannot bind the completion queue", rc);
  if (int rc = fi_enable(endpoint); rc != 0) return fabric_error("cannot enable the endpoint", rc);
  name_.resize(kMaxNameBytes);
  std::size_t size = name_.size();
  if (int rc = fi_getname(&endpoint->fid, name_.data(), &size); rc != 0 || size > name_.size())
    return fabric_error("cannot learn the endpoint's address", rc);
  name_.resize(size);
  return {};
}

Status Fabric::find_host() {
  // Where the fabric has addresses of another kind, the bootstrap has one of its own.
  host_ = is_ip(*info_) ? numeric_host(static_cast<const sockaddr *>(info_->src_addr)) : best_host();
  if (host_.empty())
    return Error{Code::kUnsupported, "no network interface is up; not even the loopback (ip link set lo up)"};
  return {};
}

bool Fabric::has_only_tcp() const {
  const auto name = provider();
  return name.starts_with("tcp") || name.starts_with("net") || name.starts_with("sockets");
}

bool Fabric::must_end_reads() const {
  const auto kMended = FI_VERSION(118, 0);  // as providers that come with libfabric 1.18 count
  return has_only_tcp() && FI_VERSION_LT(info_->fabric_attr->prov_version, kMended);
}

bool Fabric::may_block() {
  fid *queue = &queue_->fid;
  return wait_fd_ >= 0 && fi_trywait(domain_->fabric(), &queue, 1) == FI_SUCCESS;
}

Result<fi_addr_t> Fabric::add_peer(const std::vector<std::byte> &name) {
  expire_peers();
  auto &peer = peers_[name];
  if (peer.address == FI_ADDR_UNSPEC &&
      fi_av_insert(addresses_.get(), name.data(), 1, &peer.address, 0, nullptr) != 1) {
    peers_.erase(name);
    return Error{Code::kBadMessage, "the peer's fabric address cannot be used", nessie::Scope::kPeer};
  }
  ++peer.references;
  return peer.address;
}

void Fabric::remove_peer(const std::vector<std::byte> &name, Removal removal) {
  auto found = peers_.find(name);
  if (found == peers_.end() || --found->second.references > 0) return;
  found->second.expires = removal == Removal::kNow ? nessie::Deadline::now() : nessie::Deadline::in(kPeerRest);
  expire_peers();
}

bool Fabric::is_last_user(const std::vector<std::byte> &name) const {
  const auto found = peers_.find(name);
  return found != peers_.end() && found->second.references == 1;
}

void Fabric::expire_peers() {
  for (auto next = peers_.begin(); next != peers_.end();) {
    auto entry = next++;
    if (entry->second.references > 0 || !entry->second.expires.passed()) continue;
    fi_av_remove(addresses_.get(), &entry->second.address, 1, 0);
    peers_.erase(entry);
  }
}

std::uint64_t Fabric::base_address(std::span<std::byte> memory) const {
  return info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0;
}

}  // namespace nnti::ofi
