// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/runtime/engine.hpp>

#include <nssi/statistics.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nssi {

namespace {

template <class AnyHistogram> TimeHistogram in_nanoseconds(const AnyHistogram &histogram, double tick_ns) {
  const auto ns = [tick_ns](std::uint64_t ticks) {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(ticks) * tick_ns));
  };
  TimeHistogram result;
  result.sum_ns = ns(histogram.sum());
  result.max_ns = ns(histogram.max());
  const auto &counts = histogram.counts();
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    if (counts[bucket] == 0) continue;
    result.count += counts[bucket];
    const bool is_last = bucket + 1 == counts.size();
    result.buckets.push_back({is_last ? result.max_ns : ns(AnyHistogram::largest_in(bucket)), counts[bucket]});
  }
  return result;
}

OperationStatistics describe(const Offered &offered, double tick_ns) {
  const auto &operation = offered.operation;
  OperationStatistics result;
  result.interface = operation.interface;
  result.provider = operation.provider;
  result.op = operation.op;
  result.name = operation.name;
  if (offered.counters == nullptr) return result;
  const auto &counters = *offered.counters;
  result.calls = counters.calls;
  result.errors = counters.errors.list();
  result.dropped = counters.dropped;
  result.turned_away = counters.turned_away;
  result.sent_again = counters.sent_again;
  result.args_bytes = counters.args_bytes;
  result.result_bytes = counters.result_bytes;
  result.pulled_bytes = counters.pulled_bytes;
  result.pushed_bytes = counters.pushed_bytes;
  result.viewed_bytes = counters.viewed_bytes;
  result.queueing = in_nanoseconds(counters.queueing, tick_ns);
  result.execution = in_nanoseconds(counters.execution, tick_ns);
  result.transfer = in_nanoseconds(counters.transfer, tick_ns);
  return result;
}

ServiceStatistics describe(const Admission &admission) {
  return {.interface = admission.service().interface,
          .provider = admission.service().provider,
          .limits = admission.limits(),
          .requests = admission.requests(),
          .bytes = admission.bytes(),
          .callers_waiting = admission.callers_waiting()};
}

/// A digest, so that nobody who reads the name can claim the session.
std::string name_of(const wire::SessionId &session) {
  constexpr std::size_t kBytes = 8;
  const auto digest = nessie::Credential().prove("nssi caller", session, {});
  std::string name;
  for (const auto byte : std::span(digest).first<kBytes>())
    name += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return name;
}

CallerStatistics describe(nnti::Endpoint &endpoint, const Session &session, PeerId connection, double tick_ns) {
  CallerStatistics result;
  result.session = name_of(session.id());
  if (connection.value != 0) result.transport = endpoint.transport_of(connection);
  result.calls = session.counters.calls;
  result.errors = session.counters.errors;
  result.in_bytes = session.counters.in_bytes;
  result.out_bytes = session.counters.out_bytes;
  result.in_progress = session.requests();
  if (const auto *times = session.counters.measured.get(); times != nullptr) {
    result.queueing = in_nanoseconds(times->queueing, tick_ns);
    result.execution = in_nanoseconds(times->execution, tick_ns);
    result.transfer = in_nanoseconds(times->transfer, tick_ns);
  }
  return result;
}

CallStatistics describe(const CallCounters &counters, double tick_ns) {
  return {.peer = counters.peer,
          .interface = counters.service.interface,
          .provider = counters.service.provider,
          .op = counters.op,
          .calls = counters.calls,
          .errors = counters.errors.list(),
          .sent_again = counters.sent_again,
          .held_back = counters.held_back,
          .args_bytes = counters.args_bytes,
          .result_bytes = counters.result_bytes,
          .round_trip = in_nanoseconds(counters.round_trip, tick_ns)};
}

}  // namespace

std::uint64_t TimeHistogram::percentile_ns(double part) const {
  const auto wanted = part * static_cast<double>(count);
  std::uint64_t seen = 0;
  for (const auto &bucket : buckets)
    if (seen += bucket.count; static_cast<double>(seen) >= wanted) return std::min(bucket.up_to_ns, max_ns);
  return max_ns;
}

Statistics Engine::statistics() {
  const auto tick_ns = Ticks::nanoseconds();
  Statistics result;
  result.is_counted = counts();
  result.uptime_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - opened_at_).count());
  result.refused = server_.refused();
  for (const auto &offered : server_.operations().all()) result.operations.push_back(describe(*offered, tick_ns));
  for (const auto &admission : server_.operations().admissions()) result.services.push_back(describe(*admission));
  server_.sessions().for_each([&](const Session &session, PeerId connection) {
    result.callers.push_back(describe(endpoint(), session, connection, tick_ns));
  });
  for (const auto &counters : client_.counters().all()) result.calls.push_back(describe(*counters, tick_ns));
  if (budget() != nullptr)
    for (const auto &usage : budget()->usage())
      result.memory.push_back({usage.name, usage.used_bytes, usage.high_bytes});
  if (add_to_statistics_) add_to_statistics_(result);
  return result;
}

}  // namespace nssi
