// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

using nessie::Deadline;

Result<ReportResult> Client::shutdown(int server, Deadline deadline) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->answer(impl_->start(server, &Stub::shutdown_async), server, deadline);
}

}  // namespace staging
