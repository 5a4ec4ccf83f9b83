// SPDX-License-Identifier: BSD-3-Clause
// What a process offers, found by interface, provider and number.
#pragma once

#include <nssi/nssi.hpp>
#include <nssi/observe/counters.hpp>
#include <nssi/serve/admission.hpp>

#include <memory>
#include <vector>

namespace nssi {

/// Where a request goes.
struct Address {
  Interface interface;
  std::uint32_t provider = 0;
  OpCode op = 0;
  bool operator==(const Address &) const = default;
};

class Pool;

/// How long the long results of an operation are, about: what each request is charged for that while it has none.
class ResultSize {
 public:
  /// Rises faster than it falls: who is charged too little may get what there is no room for.
  void note(std::uint64_t size_bytes) {
    if (size_bytes > usual_)
      usual_ += (size_bytes - usual_ + 1) / 2;
    else
      usual_ -= (usual_ - size_bytes + 7) / 8;
  }
  void note_short() {
    if (usual_ != 0) [[unlikely]]
      note(0);
  }
  std::uint64_t usual() const { return usual_; }

 private:
  std::uint64_t usual_ = 0;
};

/// What holds of an operation where the configuration says nothing.
struct Standing {
  explicit Standing(const Operation &operation) : priority(operation.priority), role(operation.role) {}
  Priority priority;
  Role role;
};

/// An operation, with what this process knows of it.
struct Offered {
  Operation operation;
  Standing program;                                  ///< as the program says
  Admission *admission = nullptr;                    ///< its service's
  Pool *pool = nullptr;                              ///< null: the driver's thread
  std::unique_ptr<OperationCounters> counters = {};  ///< null: nothing is counted
  mutable ResultSize result_size = {};               ///< the driver's
};

class Operations {
 public:
  /// `program`: as it was before the configuration was heard. kExists.
  Status add(Operation operation, const Standing &program, Pool *pool, bool is_counted);
  /// Null: see why_not(). What is found stays where it is.
  const Offered *find(const Address &address) const {
    if (table_.empty()) return nullptr;
    const auto mask = table_.size() - 1;
    for (auto i = hash(address) & mask;; i = (i + 1) & mask)
      if (table_[i].offered == nullptr || table_[i].address == address) return table_[i].offered;
  }
  const std::vector<std::unique_ptr<Offered>> &all() const { return all_; }
  /// One for each provider of an interface.
  const std::vector<std::unique_ptr<Admission>> &admissions() const { return admissions_; }
  /// Priorities and roles, as the configuration says, or else the program. kInvalidArgument: a setting cannot be read;
  /// nothing was changed.
  Status reconfigure(const nessie::Config &config);
  /// Of the services that there are, and of those that come.
  void set_limits(const Limits &limits);
  /// kNotFound.
  Status set_limits(const Interface &interface, std::uint32_t provider, const Limits &limits);
  /// What is missing: the program, this version of it, this provider, or this operation.
  Error why_not(const Address &address) const;

 private:
  struct Entry {
    Address address;
    const Offered *offered = nullptr;
  };
  static std::size_t hash(const Address &address) {
    const auto high = std::uint64_t{address.interface.program} << 32 | address.interface.version;
    const auto low = std::uint64_t{address.provider} << 32 | address.op;
    return ((high ^ low * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u) >> 32;
  }
  void enter(const Offered &offered);
  Admission *admission_of(const Interface &interface, std::uint32_t provider) const;

  Limits limits_;
  std::vector<std::unique_ptr<Admission>> admissions_;
  std::vector<std::unique_ptr<Offered>> all_;
  std::vector<Entry> table_;  ///< open addressing, at most half full; a power of two
};

}  // namespace nssi
