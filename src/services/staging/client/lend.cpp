// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Result<nessie::Fd> Client::lend(FileToken file, const FileIdentity &identity) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity);
  auto lent = impl_->ask(home, &Stub::lend_async, file);
  if (!lent.ok()) return lent.error();
  auto descriptor = impl_->runtime->take_descriptor(impl_->at(home).peer, lent->descriptor);
  if (!descriptor.ok()) return descriptor.error();
  return nessie::Fd(*descriptor);
}

}  // namespace staging
