// SPDX-License-Identifier: BSD-3-Clause
#include "one_sided.hpp"

#include "nnti_team.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

/// In the order of kOneSided, size by size.
Status lead(Leader &leader, Lane &lane, const std::vector<std::uint64_t> &sizes) {
  PageAligned<std::byte> memory(std::ranges::max(sizes), std::byte{2});
  auto *next = lane.values.data();
  for (auto size : sizes) {
    auto local = std::span(memory).first(size);
    int calls = transfers_per_batch(size);
    for (const auto *remote : {&leader.lent().mapped, &leader.lent().application}) {
      *next++ = typical_us(calls, [&](bool) { leader.get(*remote, local); });
      *next++ = typical_us(calls, [&](bool) { leader.put(*remote, local); });
    }
  }
  return {};
}

}  // namespace

nessie::Result<std::map<std::string, TimesBySize>> one_sided_times(const Options &options,
                                                                   const std::vector<std::uint64_t> &sizes) {
  Team team;
  team.memory_bytes = std::ranges::max(sizes);
  auto board = board_for(team);
  auto status = run_team(options, team, *board, [&](Leader &leader, Lane &lane) { return lead(leader, lane, sizes); });
  if (!status.ok()) return status.error();
  std::map<std::string, TimesBySize> times;
  const auto *value = board->lane(0).values.data();
  for (auto size : sizes)
    for (const char *mode : kOneSided) times[mode][size] = *value++;
  return times;
}

}  // namespace bench
