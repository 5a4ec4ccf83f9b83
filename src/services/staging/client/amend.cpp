// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

#include <utility>

namespace staging {

Result<int> Client::amend(const AmendArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  auto &file = impl_->opened[args.file];
  auto numbered = args;
  numbered.number = ++file.definitions;
  return code_of(impl_->ask(file.home, &Stub::amend_async, numbered));
}

bool Client::define(const AmendArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  auto &file = impl_->opened[args.file];
  if (file.defining && !file.defining->answer.test()) return false;
  file.defined = impl_->finish_defining(args.file);
  auto numbered = args;
  numbered.number = file.definitions + 1;
  if (file.defined.ok() && *file.defined == 0) {
    ++file.definitions;
    file.defining = impl_->start(file.home, &Stub::amend_async, numbered);
  }
  return true;
}

// One message after the other, so that the server gets them in their order.
Result<int> Client::Impl::finish_defining(FileToken token) {
  const int home = opened[token].home;
  if (auto sent = std::exchange(opened[token].defining, std::nullopt)) {
    auto told = code_of(this->answer(std::move(*sent), home));
    auto &before = opened[token].defined;
    if (before.ok() && *before == 0) before = std::move(told);
  }
  return std::exchange(opened[token].defined, 0);
}

}  // namespace staging
