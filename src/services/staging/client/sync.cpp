// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Result<int> Client::sync(FileToken file, std::int64_t num_records) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(file);
  const auto opened = impl_->opened.find(file);
  const FileArgs args{file, num_records, {}, {}};
  if (opened == impl_->opened.end() || opened->second.attached) return impl_->ask_all(&Stub::sync_async, args);
  return code_of(impl_->ask(opened->second.home, &Stub::sync_async, args));
}

}  // namespace staging
