// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Result<ReportResult> Client::report(int server) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ask(server, &Stub::report_async);
}

Result<ReportResult> Client::report_of(int server, const std::string &job) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ask(server, &Stub::report_of_async, job);
}

Status Client::note_native(const std::string &path, const std::string &why, bool is_choice) {
  const std::lock_guard lock(impl_->mutex);
  auto result = impl_->ask(0, &Stub::note_native_async, NativeNote{path, why, is_choice});
  return result.ok() ? Status() : result.error();
}

}  // namespace staging
