// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/sender.hpp>

namespace staging {

Result<int> Client::read(FileToken file, std::int64_t num_records, const Order &order, std::span<const Item> items) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(file);
  auto outcome = std::make_shared<Outcome>();
  Impl::Sender(*impl_, false, file, num_records, order, outcome).send(items);
  impl_->finish(outcome->pending);
  return outcome->take();
}

}  // namespace staging
