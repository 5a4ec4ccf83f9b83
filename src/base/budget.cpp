// SPDX-License-Identifier: BSD-3-Clause
#include "base/budget.hpp"

#include <algorithm>
#include <utility>

namespace nessie {

Budget::Account::Account(Budget &budget, std::string name, Callbacks callbacks)
    : budget_(budget), name_(std::move(name)), callbacks_(std::move(callbacks)) {
  const std::lock_guard lock(budget_.mutex_);
  budget_.accounts_.push_back(this);
}

Budget::Account::~Account() {
  give_back(usage().used_bytes);
  const std::lock_guard lock(budget_.mutex_);
  budget_.accounts_.remove(this);
}

Budget::Usage Budget::Account::usage() const {
  const std::lock_guard lock(budget_.mutex_);
  return {name_, used_, high_};
}

std::uint64_t Budget::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::vector<Budget::Usage> Budget::usage() const {
  const std::lock_guard lock(mutex_);
  std::vector<Usage> all;
  for (const auto *account : accounts_) all.push_back({account->name_, account->used_, account->high_});
  return all;
}

/// With the lock held; what is returned is called without it.
std::vector<std::function<void()>> Budget::calls_of(const Account &except,
                                                    std::function<void()> Callbacks::*callback) const {
  std::vector<std::function<void()>> calls;
  for (const auto *account : accounts_)
    if (account != &except && account->callbacks_.*callback) calls.push_back(account->callbacks_.*callback);
  return calls;
}

bool Budget::try_take(Account &account, std::uint64_t size_bytes, bool must) {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    const bool has_room = limit_ == 0 || used_ + size_bytes <= limit_;
    if (has_room || must || account.used_ == 0) {
      used_ += size_bytes;
      account.used_ += size_bytes;
      account.high_ = std::max(account.high_, account.used_);
      return true;
    }
    is_short_ = true;
    calls = calls_of(account, &Callbacks::on_shortage);
  }
  for (const auto &call : calls) call();
  return false;
}

void Budget::give_back(Account &account, std::uint64_t size_bytes) {
  if (size_bytes == 0) return;  // there is no more room than before
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    used_ -= size_bytes;
    account.used_ -= size_bytes;
    if (std::exchange(is_short_, false)) calls = calls_of(account, &Callbacks::on_room);
  }
  for (const auto &call : calls) call();
}

}  // namespace nessie
