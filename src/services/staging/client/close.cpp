// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Result<int> Client::close(FileToken file, std::int64_t num_records, Closing how, const Order &order) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->close(file, num_records, how, order);
}

Result<int> Client::Impl::close(FileToken file, std::int64_t num_records, Closing how, const Order &order) {
  (void)finish_defining(file);  // enddef has told
  const auto &closing = opened[file];
  Answers answers;
  for (int server = 0; server < count(); ++server) {
    if (!closing.attached && server != closing.home) continue;
    const FileArgs args{file, num_records, how, order.known(server)};
    answers.emplace_back(server, start(server, &Stub::close_async, args));
  }
  release_by_others(file, closing.home);
  auto closed = first_error(answers);
  opened.erase(file);
  return closed;
}

Result<int> Client::Impl::detach_others(FileToken token, std::int64_t num_records, int home) {
  opened[token].attached = false;
  return ask_all(&Stub::detach_async, FileArgs{token, num_records, Closing::kDurable, {}}, home);
}

}  // namespace staging
