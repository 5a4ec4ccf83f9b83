// SPDX-License-Identifier: BSD-3-Clause
#include "one_sided.hpp"

#include "comparison.hpp"
#include "nnti_team.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

#include <algorithm>

namespace bench {
namespace {

nessie::Status lead(Leader &leader, Lane &lane, const std::vector<std::uint64_t> &sizes) {
  PageAligned<std::byte> memory(std::ranges::max(sizes), std::byte{2});
  const auto &[mapped, application] = leader.lent();
  for (auto size : sizes) {
    const auto local = std::span(memory).first(size);
    const auto time = [&](const char *mode, auto &&transfer) {
      lane.leave(mode, size, megabytes_per_s(typical_us(transfers_per_batch(size), transfer), size));
    };
    time("get-mapped", [&](bool) { leader.get(mapped, local); });
    time("put-mapped", [&](bool) { leader.put(mapped, local); });
    time("get-application", [&](bool) { leader.get(application, local); });
    time("put-application", [&](bool) { leader.put(application, local); });
  }
  return {};
}

}  // namespace

nessie::Result<std::unique_ptr<Board>> run_one_sided(const Options &options, const std::vector<std::uint64_t> &sizes) {
  return run_team(options, {.memory_bytes = std::ranges::max(sizes)},
                  [&](Leader &leader, Lane &lane) { return lead(leader, lane, sizes); });
}

}  // namespace bench
