// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/observe/counters.hpp>

#include <fmt/format.h>

namespace nssi {

void RequestMeter::count(OperationCounters &operation, CallerCounters &caller) const {
  if (!has_begun && error == Code::kOk) return void(++operation.dropped);
  ++operation.calls;
  operation.args_bytes += args_bytes;
  operation.result_bytes += result_bytes;
  operation.pulled_bytes += pulled_bytes;
  operation.pushed_bytes += pushed_bytes;
  operation.viewed_bytes += viewed_bytes;
  ++caller.calls;
  caller.in_bytes += args_bytes + pulled_bytes + viewed_bytes;
  caller.out_bytes += result_bytes + pushed_bytes;
  if (error != Code::kOk) {
    operation.errors.add(error);
    ++caller.errors;
  }
  if (weight == 0 || !has_begun) return;
  const auto queueing = Ticks::between(arrived, began), execution = Ticks::between(began, ended);
  operation.queueing.record(queueing, weight);
  operation.execution.record(execution, weight);
  caller.times().queueing.record(queueing, weight);
  caller.times().execution.record(execution, weight);
  operation.sampler.note(execution);
}

void CallMeter::finish(Code code, std::uint64_t result_bytes) {
  ++counters->calls;
  counters->result_bytes += result_bytes;
  if (code != Code::kOk) counters->errors.add(code);
  if (weight == 0) return;
  const auto round_trip = Ticks::since(sent);
  counters->round_trip.record(round_trip, weight);
  counters->sampler.note(round_trip);
}

std::size_t AllCallCounters::Hash::operator()(const Key &key) const {
  const auto &[service, op] = key;
  auto hash = service.peer.value;
  for (auto word : {service.interface.program, service.interface.version, service.provider, op})
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash >> 16;
}

CallCounters &AllCallCounters::of(const Service &service, OpCode op, std::string_view url) {
  const bool is_full = by_key_.size() >= kMost;
  const Key key{service, op};
  if (const auto found = by_key_.find(key); found != by_key_.end()) return *found->second;
  const Key others{};
  if (is_full && by_key_.contains(others)) return *by_key_[others];
  auto &counters = *all_.emplace_back(std::make_unique<CallCounters>());
  if (!is_full) {
    counters.service = service;
    counters.op = op;
  }
  counters.peer = is_full        ? std::string("others")
                  : !url.empty() ? std::string(url)
                                 : fmt::format("peer {}", service.peer.value);
  return *(by_key_[is_full ? others : key] = &counters);
}

std::vector<ErrorCount> ErrorCounters::list() const {
  std::vector<ErrorCount> result;
  for (std::size_t code = 0; code < counts_.size(); ++code)
    if (counts_[code] != 0) result.push_back({static_cast<Code>(code), counts_[code]});
  return result;
}

}  // namespace nssi
