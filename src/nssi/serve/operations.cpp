// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/operations.hpp>

#include <nssi/drive/settings.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace nssi {

namespace {

Address address_of(const Operation &operation) { return {operation.interface, operation.provider, operation.op}; }

}  // namespace

Status Operations::add(Operation operation, const Standing &program, Pool *pool, bool is_counted) {
  const auto address = address_of(operation);
  if (const auto *other = find(address); other != nullptr)
    return Error{Code::kExists, fmt::format("operation {} of program {:#x}, version {}, provider {} is taken by {}",
                                            address.op, address.interface.program, address.interface.version,
                                            address.provider, other->operation.name)};
  auto *admission = admission_of(operation.interface, operation.provider);
  if (admission == nullptr) {
    const Service service{{}, operation.interface, operation.provider};
    admissions_.push_back(std::make_unique<Admission>(service, admissions_.size(), limits_));
    admission = admissions_.back().get();
  }
  auto counters = is_counted ? std::make_unique<OperationCounters>() : nullptr;
  all_.push_back(
      std::make_unique<Offered>(Offered{std::move(operation), program, admission, pool, std::move(counters)}));
  if (2 * all_.size() > table_.size()) {
    table_.assign(std::max<std::size_t>(16, 2 * table_.size()), {});
    for (const auto &each : all_) enter(*each);
  } else {
    enter(*all_.back());
  }
  return {};
}

Admission *Operations::admission_of(const Interface &interface, std::uint32_t provider) const {
  for (const auto &each : admissions_)
    if (each->service().interface == interface && each->service().provider == provider) return each.get();
  return nullptr;
}

Status Operations::reconfigure(const nessie::Config &config) {
  std::vector<Standing> settled;
  for (const auto &offered : all_) {
    Operation operation;
    operation.name = offered->operation.name;
    std::tie(operation.priority, operation.role) = std::tie(offered->program.priority, offered->program.role);
    if (auto status = settle_operation(config, operation); !status.ok()) return status;
    settled.emplace_back(operation);
  }
  for (std::size_t i = 0; i < all_.size(); ++i)
    std::tie(all_[i]->operation.priority, all_[i]->operation.role) = std::tie(settled[i].priority, settled[i].role);
  return {};
}

void Operations::set_limits(const Limits &limits) {
  limits_ = limits;
  for (const auto &each : admissions_)
    if (!each->has_own_limits()) each->set_limits(limits);
}

Status Operations::set_limits(const Interface &interface, std::uint32_t provider, const Limits &limits) {
  auto *admission = admission_of(interface, provider);
  if (admission == nullptr)
    return Error{Code::kNotFound, fmt::format("provider {} of program {:#x}, version {} has no operations yet",
                                              provider, interface.program, interface.version)};
  admission->set_own_limits(limits);
  return {};
}

void Operations::enter(const Offered &offered) {
  const auto address = address_of(offered.operation);
  auto i = hash(address) & (table_.size() - 1);
  while (table_[i].offered != nullptr) i = (i + 1) & (table_.size() - 1);
  table_[i] = {address, &offered};
}

Error Operations::why_not(const Address &address) const {
  const auto [program, version] = address.interface;
  bool has_version = false, has_provider = false;
  std::vector<std::uint32_t> versions;
  for (const auto &offered : all_) {
    const auto &operation = offered->operation;
    if (operation.interface.program != program) continue;
    versions.push_back(operation.interface.version);
    if (operation.interface.version != version) continue;
    has_version = true;
    has_provider |= operation.provider == address.provider;
  }
  if (versions.empty()) return {Code::kNotFound, fmt::format("the service does not offer program {:#x}", program)};
  if (!has_version) {
    const auto [lowest, highest] = std::ranges::minmax(versions);
    return {Code::kUnsupported, fmt::format("the service offers versions {} to {} of program {:#x}, not {}: build the "
                                            "caller and the service from the same interface",
                                            lowest, highest, program, version)};
  }
  if (!has_provider)
    return {Code::kNotFound, fmt::format("program {:#x} has no provider {} here", program, address.provider)};
  return {Code::kNotFound, fmt::format("program {:#x}, version {} has no operation {}", program, version, address.op)};
}

}  // namespace nssi
