// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

// A record may have several owners: each drains what it has before the home server fills it all.
Result<int> Client::fill_record(const FillRecordArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(args.file);
  const int home = impl_->opened[args.file].home;
  auto drained = impl_->ask_all(&Stub::sync_async, FileArgs{args.file, -1, {}, {}}, home);
  if (!drained.ok() || *drained != 0) return drained;
  return code_of(impl_->ask(home, &Stub::fill_record_async, args));
}

}  // namespace staging
