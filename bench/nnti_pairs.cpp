// SPDX-License-Identifier: BSD-3-Clause
// nnti-pairs: what several pairs of processes move together, by put and by get of memory that Nessie allocated; and
// nnti-clients: what many clients get from one server.
#include "many_leaders.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

namespace bench {
namespace {

/// Counts transfers of the first `size` bytes.
template <class Transfer> nessie::Status count(Lane &lane, std::uint64_t size, Transfer &&transfer) {
  PageAligned<std::byte> memory(size, std::byte{1});
  auto once = [&](bool) { transfer(memory); };
  tally_for(kWarmUp_s, once);
  lane.tally = tally_for(kTally_s, once);
  return {};
}

Measurement gets(std::uint64_t size) {
  auto lead = [size](Leader &leader, Lane &lane) {
    return count(lane, size, [&](std::span<std::byte> local) { leader.get(leader.lent().mapped, local); });
  };
  return {"get", kPolling, size, 1, lead, calls_per_s, {{"gets-per-s", "get"}}};
}

Measurement puts(std::uint64_t size) {
  auto lead = [size](Leader &leader, Lane &lane) {
    return count(lane, size, [&](std::span<std::byte> local) { leader.put(leader.lent().mapped, local); });
  };
  return {"put", kPolling, size, 1, lead, calls_per_s, {{"puts-per-s", "put"}, {"transfers-per-s", "send"}}};
}

double megabytes(double calls_per_s, std::uint64_t size) { return calls_per_s * static_cast<double>(size) / 1e6; }

}  // namespace

nessie::Status nnti_pairs(const Options &options, Report &report) {
  ManyLeaders workload{"put and get",
                       options.once ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 4, 8},
                       false,
                       "bandwidth_MBps",
                       "MB/s",
                       megabytes,
                       {puts(64 << 10), gets(64 << 10)}};
  if (!options.once)
    for (const auto &measurement : {puts(1 << 20), gets(1 << 20)}) workload.measurements.push_back(measurement);
  return run_many_leaders(options, options.repetitions(9, 2), workload, report);
}

nessie::Status nnti_clients(const Options &options, Report &report) {
  ManyLeaders workload{"gets", {1, options.once ? 4 : 64}, true, "bandwidth_MBps", "MB/s", megabytes, {gets(1 << 20)}};
  return run_many_leaders(options, options.repetitions(9, 2), workload, report);
}

}  // namespace bench
