// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

#include <services/staging/handle.hpp>

namespace staging {

Result<HeaderResult> Client::open(const OpenArgs &args, int descriptor) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity_of(descriptor));
  impl_->note_opening(args, descriptor, home);
  auto result = [&]() -> Result<HeaderResult> {
    if (auto held = impl_->hold_by_others(args, descriptor, home); !held.ok()) return held.error();
    return impl_->answer(impl_->start_with(descriptor, home, &Stub::open_async, args), home);
  }();
  if (!result.ok() || result->header.empty()) {
    impl_->forget_opening(args.file, home);
    return result;
  }
  impl_->opened[args.file].data_modes = 1;
  auto attached = impl_->attach_others(args.file, home);
  if (attached.ok() && *attached == 0) return result;
  (void)impl_->close(args.file, -1, Closing::kDurable, Order(servers()));
  if (!attached.ok()) return attached.error();
  result->nc_error = *attached;
  return result;
}

}  // namespace staging
