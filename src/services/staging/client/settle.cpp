// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Status Client::settle(const SettleArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  auto settled = impl_->ask_all(&Stub::settle_async, args);
  return settled.ok() ? Status() : settled.error();
}

}  // namespace staging
