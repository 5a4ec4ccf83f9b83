// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

void Client::mark(FileToken file, Mark mark, const Order &order) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->opened.find(file);
  if (found == impl_->opened.end()) return;
  auto &opened = found->second;
  mark.number = ++opened.marks;
  mark.definition = opened.data_modes;
  for (int server = 0; server < impl_->count(); ++server) mark.after.push_back(order.known(server));
  nssi::CallOptions one_way = Impl::kPatient;
  one_way.one_way = true;
  (void)impl_->at(opened.home).stub.mark_async({file, std::move(mark)}, one_way);
}

}  // namespace staging
