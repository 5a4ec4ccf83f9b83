// SPDX-License-Identifier: BSD-3-Clause
// The memory that a process may take for data on their way: one budget, from which every pool draws, and in which each
// has an account. So somebody knows what the process takes, and a pool that is short gets what others keep for later.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace nessie {

/// Any thread; no function of it waits.
class Budget {
 public:
  class Account;
  struct Usage {
    std::string name;
    std::uint64_t used_bytes = 0, high_bytes = 0;  ///< now, and at most until now
  };

  struct Callbacks {
    /// There may be room again, after try_take() has failed. On the thread that made room: it must do no more than wake
    /// somebody up.
    std::function<void()> on_room = {};
    /// Another account is short: what this one keeps for later only is wanted. Likewise; or it gives that back at once,
    /// if it waits for no lock.
    std::function<void()> on_shortage = {};
  };

  /// 0: no limit.
  explicit Budget(std::uint64_t limit_bytes = 0) : limit_(limit_bytes) {}
  Budget(const Budget &) = delete;
  std::uint64_t limit_bytes() const { return limit_; }
  /// Of all accounts together.
  std::uint64_t used_bytes() const;
  /// One for each account, in the order in which they were opened.
  std::vector<Usage> usage() const;

 private:
  bool try_take(Account &account, std::uint64_t size_bytes, bool must);
  void give_back(Account &account, std::uint64_t size_bytes);
  std::vector<std::function<void()>> calls_of(const Account &except, std::function<void()> Callbacks::*callback) const;

  const std::uint64_t limit_;
  mutable std::mutex mutex_;
  std::uint64_t used_ = 0;
  bool is_short_ = false;  ///< somebody got nothing, and has not been told of room since
  std::list<Account *> accounts_;
};

/// What one pool has taken. What it has when it ends goes back. Not to outlive its budget; one with callbacks ends when
/// no other thread uses the budget any more.
class Budget::Account {
 public:
  Account(Budget &budget, std::string name, Callbacks callbacks = {});
  ~Account();
  Account(const Account &) = delete;

  /// False: the budget has no room, and the other accounts have been told. An account that has nothing always gets
  /// something, however large: nobody starves.
  [[nodiscard]] bool try_take(std::uint64_t size_bytes) { return budget_.try_take(*this, size_bytes, false); }
  /// Takes it in any case: for what a process cannot do without.
  void take(std::uint64_t size_bytes) { (void)budget_.try_take(*this, size_bytes, true); }
  void give_back(std::uint64_t size_bytes) { budget_.give_back(*this, size_bytes); }
  Usage usage() const;

 private:
  friend class Budget;
  Budget &budget_;
  const std::string name_;
  const Callbacks callbacks_;
  std::uint64_t used_ = 0, high_ = 0;  ///< the budget's mutex guards them
};

}  // namespace nessie
