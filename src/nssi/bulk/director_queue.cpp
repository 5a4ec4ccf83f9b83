// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/bulk/director_queue.hpp>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace nssi {

// --- orders -----------------------------------------------------------------------------------------------------------

namespace {

class OldestFirst final : public Policy {
  bool before(const Ask &a, const Ask &b) const override { return a.number < b.number; }
};

class SmallestFirst final : public Policy {
  bool before(const Ask &a, const Ask &b) const override { return a.size_bytes < b.size_bytes; }
};

class LargestFirst final : public Policy {
  bool before(const Ask &a, const Ask &b) const override { return a.size_bytes > b.size_bytes; }
};

class ByTarget final : public Policy {
  bool before(const Ask &a, const Ask &b) const override { return place(a) < place(b); }
  void let_through(const Ask &ask) override { last_ = ask.target; }
  /// Targets below the last one come after all others.
  std::tuple<bool, std::uint64_t, std::uint64_t> place(const Ask &ask) const {
    const auto &[file, offset] = ask.target;
    return {std::pair(file, offset) < std::pair(last_.file, last_.offset), file, offset};
  }
  Target last_;
};

class CallersInTurn final : public Policy {
  bool before(const Ask &a, const Ask &b) const override { return start_of(a) < start_of(b); }
  void let_through(const Ask &ask) override {
    now_ = start_of(ask);
    finished_[ask.caller.value] = now_ + ask.size_bytes;
    if (finished_.size() > kMostCallers)
      std::erase_if(finished_, [this](const auto &caller) { return caller.second <= now_; });
  }
  /// In bytes that an equal share would have been served.
  std::uint64_t start_of(const Ask &ask) const {
    const auto caller = finished_.find(ask.caller.value);
    return caller == finished_.end() ? now_ : std::max(now_, caller->second);
  }
  static constexpr std::size_t kMostCallers = 4096;
  std::uint64_t now_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> finished_;
};

}  // namespace

std::unique_ptr<Policy> oldest_first() { return std::make_unique<OldestFirst>(); }
std::unique_ptr<Policy> smallest_first() { return std::make_unique<SmallestFirst>(); }
std::unique_ptr<Policy> largest_first() { return std::make_unique<LargestFirst>(); }
std::unique_ptr<Policy> by_target() { return std::make_unique<ByTarget>(); }
std::unique_ptr<Policy> callers_in_turn() { return std::make_unique<CallersInTurn>(); }

// --- TokenBucket ------------------------------------------------------------------------------------------------------

/// At most a year, so that sums of times do not overflow.
Clock::duration TokenBucket::time_of(std::uint64_t size_bytes) const {
  constexpr std::chrono::duration<double> kYear = std::chrono::hours(24 * 365);
  const std::chrono::duration<double> time(static_cast<double>(size_bytes) / static_cast<double>(bytes_per_second_));
  return std::chrono::ceil<Clock::duration>(std::min(time, kYear));
}

Clock::time_point TokenBucket::ready_at(std::uint64_t size_bytes) const {
  if (bytes_per_second_ == 0) return Clock::time_point::min();
  return full_at_ - time_of(burst_bytes_ - std::min(size_bytes, burst_bytes_));
}

void TokenBucket::take(std::uint64_t size_bytes, Clock::time_point now) {
  if (bytes_per_second_ != 0) full_at_ = std::max(full_at_, now) + time_of(size_bytes);
}

// --- DirectorQueue ----------------------------------------------------------------------------------------------------

DirectorQueue::DirectorQueue(DirectorOptions options)
    : options_(std::move(options)), bucket_(options_.bytes_per_second, options_.burst_bytes) {
  if (!options_.policy) options_.policy = oldest_first();
}

std::uint64_t DirectorQueue::add(Ask ask) {
  ask.number = ++last_number_;
  asks_.emplace(ask.number, ask);
  return ask.number;
}

/// The ask that goes first. Of several that the policy holds alike it is the oldest, which min_element finds first.
const Ask &DirectorQueue::first(Clock::time_point now) const {
  const auto &oldest = asks_.begin()->second;
  if (now - oldest.since >= options_.longest_wait) return oldest;
  const auto goes_before = [this](const auto &a, const auto &b) { return options_.policy->before(a.second, b.second); };
  return std::ranges::min_element(asks_, goes_before)->second;
}

/// When the oldest goes before `ask`, for which there is no room, and may find some; never, if it is that one.
Deadline DirectorQueue::next_overdue(const Ask &ask) const {
  const auto &oldest = asks_.begin()->second;
  return oldest.number == ask.number ? Deadline::never() : Deadline::at(oldest.since + options_.longest_wait);
}

bool DirectorQueue::has_memory_for(std::uint64_t size_bytes) const {
  if (options_.memory_bytes == 0 || used_bytes_ == 0) return true;
  return used_bytes_ <= options_.memory_bytes && size_bytes <= options_.memory_bytes - used_bytes_;
}

std::optional<std::uint64_t> DirectorQueue::next(Clock::time_point now) {
  next_time_ = Deadline::never();
  if (asks_.empty()) return std::nullopt;
  const auto ask = first(now);
  if (!has_memory_for(ask.size_bytes)) {
    next_time_ = next_overdue(ask);
    return std::nullopt;
  }
  if (const auto ready_at = bucket_.ready_at(ask.size_bytes); ready_at > now) {
    next_time_ = next_overdue(ask).earlier(Deadline::at(ready_at));
    return std::nullopt;
  }
  used_bytes_ += ask.size_bytes;
  bucket_.take(ask.size_bytes, now);
  options_.policy->let_through(ask);
  asks_.erase(ask.number);
  return ask.number;
}

}  // namespace nssi
