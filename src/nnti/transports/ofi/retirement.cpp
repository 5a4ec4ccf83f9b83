// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/retirement.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace nnti::ofi {
namespace {

struct Retired {
  std::mutex mutex;
  std::size_t holders = 0;
  std::vector<std::shared_ptr<void>> objects;
};

/// Never destroyed: an endpoint may be closed while the process exits.
Retired &retired() {
  static auto &once = *new Retired;
  return once;
}

}  // namespace

Retirement::Retirement() {
  const std::lock_guard lock(retired().mutex);
  ++retired().holders;
}

Retirement::~Retirement() {
  std::vector<std::shared_ptr<void>> unreachable;  // closed without the lock
  const std::lock_guard lock(retired().mutex);
  if (--retired().holders == 0) unreachable.swap(retired().objects);
}

void Retirement::keep(std::shared_ptr<void> objects) {
  const std::lock_guard lock(retired().mutex);
  retired().objects.push_back(std::move(objects));
}

}  // namespace nnti::ofi
