// SPDX-License-Identifier: BSD-3-Clause
// What is counted. By the driver only: no locks, no atomics, no allocation while a request passes.
//
// Design notes. A clock costs as much as a tenth of a no-op call. So an operation whose handler is quick is timed once
// in sixteen times, and that time stands for sixteen; a slow one is timed each time. Everything is counted in ticks
// (base/ticks.hpp) and becomes nanoseconds for whoever asks. What a pool's thread measures lies in its request, and is
// counted when the driver gets that back.
#pragma once

#include <base/histogram.hpp>
#include <base/ticks.hpp>
#include <nssi/statistics.hpp>

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace nssi {

using nessie::CoarseHistogram;
using nessie::Histogram;
using nessie::Ticks;

/// Says which of many are timed.
class Sampler {
 public:
  /// For how many the next one stands; 0: it is not timed.
  std::uint32_t next() {
    if (untimed_++ < skipped_) return 0;
    return std::exchange(untimed_, 0);
  }
  /// How long one took that was timed.
  void note(std::uint64_t ticks) { skipped_ = ticks < kQuickTicks ? kSkipped : 0; }

 private:
  static constexpr std::uint32_t kSkipped = 15;
  static constexpr std::uint64_t kQuickTicks = 1 << 16;  ///< twenty to sixty microseconds
  std::uint32_t untimed_ = 0, skipped_ = 0;
};

/// By code. One that no table has is counted as kInternal.
class ErrorCounters {
 public:
  void add(Code code) {
    const auto index = static_cast<std::size_t>(code);
    ++counts_[index < counts_.size() ? index : static_cast<std::size_t>(Code::kInternal)];
  }
  std::vector<ErrorCount> list() const;

 private:
  static constexpr std::size_t kCodes = static_cast<std::size_t>(Code::kUnavailable) + 1;
  std::array<std::uint64_t, kCodes> counts_{};
};

/// Of an operation that is offered.
struct OperationCounters {
  Sampler sampler;
  std::uint64_t calls = 0, dropped = 0, turned_away = 0, sent_again = 0;
  std::uint64_t args_bytes = 0, result_bytes = 0, pulled_bytes = 0, pushed_bytes = 0, viewed_bytes = 0;
  ErrorCounters errors;
  Histogram queueing, execution, transfer;
};

/// Of a caller.
struct CallerCounters {
  struct Times {
    CoarseHistogram queueing, execution, transfer;
  };
  /// Made when the first one is measured.
  Times &times() {
    if (!measured) measured = std::make_unique<Times>();
    return *measured;
  }
  std::uint64_t calls = 0, errors = 0, in_bytes = 0, out_bytes = 0;
  std::unique_ptr<Times> measured;
};

/// What is measured of one request that came here.
struct RequestMeter {
  std::uint32_t weight = 0;  ///< for how many it stands; 0: it is not timed
  Code error = Code::kOk;    ///< that its caller got
  bool has_begun = false;
  std::uint64_t arrived = 0, began = 0, ended = 0;  ///< ticks, if it is timed
  std::uint64_t args_bytes = 0, result_bytes = 0, pulled_bytes = 0, pushed_bytes = 0, viewed_bytes = 0;

  /// Begins anew, for another request.
  void arrive(Sampler &sampler, std::uint64_t size_bytes) {
    *this = {};
    args_bytes = size_bytes;
    weight = sampler.next();
    if (weight != 0) arrived = Ticks::now();
  }
  void count(OperationCounters &operation, CallerCounters &caller) const;
};

/// Of calls that are made here.
struct CallCounters {
  Service service;
  OpCode op = 0;
  std::string peer;
  Sampler sampler;
  std::uint64_t calls = 0, sent_again = 0, held_back = 0, args_bytes = 0, result_bytes = 0;
  ErrorCounters errors;
  Histogram round_trip;
  bool are(const Service &whose, OpCode number) const { return op == number && service == whose; }
};

/// One for each operation of each peer, up to a number; those beyond are counted together.
class AllCallCounters {
 public:
  /// What is found stays where it is. `url`: the peer's, where it is known.
  CallCounters &of(const Service &service, OpCode op, std::string_view url);
  const std::vector<std::unique_ptr<CallCounters>> &all() const { return all_; }

 private:
  struct Key {
    Service service;
    OpCode op = 0;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key &key) const;
  };
  static constexpr std::size_t kMost = 2048;
  std::unordered_map<Key, CallCounters *, Hash> by_key_;
  std::vector<std::unique_ptr<CallCounters>> all_;
};

/// Of one call.
struct CallMeter {
  CallCounters *counters = nullptr;  ///< those of the operation that its state was last used for
  std::uint32_t weight = 0;
  std::uint64_t sent = 0;

  void send(std::uint64_t args_bytes) {
    counters->args_bytes += args_bytes;
    weight = counters->sampler.next();
    if (weight != 0) sent = Ticks::now();
  }
  void finish(Code code, std::uint64_t result_bytes);
};

}  // namespace nssi
