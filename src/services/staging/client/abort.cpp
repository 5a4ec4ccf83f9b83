// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Result<int> Client::abort(FileToken file) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(file);
  (void)impl_->finish_defining(file);
  const int home = impl_->opened[file].home;
  if (impl_->opened[file].attached)
    if (auto detached = impl_->detach_others(file, -1, home); !detached.ok()) return detached;
  impl_->release_by_others(file, home);
  auto aborted = code_of(impl_->ask(home, &Stub::abort_async, FileArgs{file, -1, {}, {}}));
  impl_->opened.erase(file);
  return aborted;
}

}  // namespace staging
