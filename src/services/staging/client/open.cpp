// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

#include <services/staging/handle.hpp>

namespace staging {

Result<HeaderResult> Client::open(const OpenArgs &args, int descriptor) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity_of(descriptor));
  auto result = [&]() -> Result<HeaderResult> {
    auto handle = impl_->give(args, descriptor, home);
    if (!handle.ok()) return handle.error();
    auto given = args;
    given.handle = *handle;
    return impl_->ask(home, &Stub::open_async, given);
  }();
  if (!result.ok() || result->header.empty()) {
    impl_->release_by_others(args.file, home);
    return result;
  }
  impl_->opened[args.file].home = home;
  auto attached = impl_->attach_others(args.file, home);
  if (attached.ok() && *attached == 0) return result;
  (void)impl_->close(args.file, -1, Closing::kDurable, Order(servers()));
  if (!attached.ok()) return attached.error();
  result->nc_error = *attached;
  return result;
}

}  // namespace staging
