// SPDX-License-Identifier: BSD-3-Clause
// rpc-size: how long a call takes that brings so many bytes along as its argument, encoded and decoded; and one whose
// handler gets them out of a registered buffer into one of its own. Beside gRPC's and libtirpc's arguments.
#include "page_aligned.hpp"
#include "repeat.hpp"
#include "rivals.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

/// In the order in which a client leaves their times.
constexpr const char *kArgument = "argument", *kMapped = "bulk-mapped", *kApplication = "bulk-application";
constexpr const char *kModes[] = {kArgument, kMapped, kApplication};

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {8, 64 << 10};
  return {8, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
}

Series series(const std::string &system, const std::string &transport, const std::string &mode, std::uint64_t size) {
  return {system, transport, mode, size, 1, "round_trip_us", "us"};
}

int calls_per_batch(std::uint64_t size) { return std::min(transfers_per_batch(size), kRoundTrips); }

class Sizes {
 public:
  Sizes(const Options &options, Report &report)
      : options_(options), report_(report), rivals_(rpc_rivals_here()), sizes_(sizes_for(options)) {}
  Status measure(int repetition);
  void add_ratios();

 private:
  Status lead(RpcClient &client, Lane &lane) const;
  Status ours();
  Status rivals();

  const Options &options_;
  Report &report_;
  std::vector<RpcRival> rivals_;
  std::vector<std::uint64_t> sizes_;
  int repetition_ = 0;
};

Status Sizes::lead(RpcClient &client, Lane &lane) const {
  PageAligned<std::byte> memory(sizes_.back(), std::byte{1});
  auto mapped = client.allocate(memory.size()), application = client.lend(memory);
  if (!mapped || !application) return mapped ? application.error() : mapped.error();
  auto *next = lane.values.data();
  for (auto size : sizes_) {
    const block bytes(size, std::byte{1});
    const int calls = calls_per_batch(size);
    *next++ = typical_us(calls, [&](bool) { client.call(Bench::TAKE, bytes); });
    for (const auto *buffer : {&*mapped, &*application})
      *next++ = typical_us(calls, [&](bool) {
        std::ranges::copy(bytes, buffer->bytes().begin());  // new bytes for each call, as arguments are
        client.call(Bench::TAKE_BULK, *buffer, size);
      });
  }
  return {};
}

Status Sizes::ours() {
  RpcTeam team;
  team.memory_bytes = sizes_.back();
  auto board = board_for(team);
  auto status = run_rpc_team(options_, team, *board, [&](RpcClient &client, Lane &lane) { return lead(client, lane); });
  if (!status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  for (auto size : sizes_)
    for (const char *mode : kModes)
      report_.add(series("nessie", options_.transport, mode, size), repetition_, *value++);
  return {};
}

Status Sizes::rivals() {
  for (const auto &it : rivals_) {
    auto answers = ask(it.rival, {it.network}, {{"take", sizes_}});
    if (!answers) return answers.error();
    for (auto [size, us] : (*answers)["take"])
      report_.add(series(name_of(it.rival), name_of(it.network), it.mode(kArgument), size), repetition_, us);
  }
  return {};
}

Status Sizes::measure(int repetition) {
  repetition_ = repetition;
  auto status = ours();
  if (status.ok()) status = rivals();
  return status;
}

void Sizes::add_ratios() {
  auto nessie = [&](const char *mode, std::uint64_t size) { return series("nessie", options_.transport, mode, size); };
  for (auto size : sizes_) {
    for (const char *bulk : {kMapped, kApplication}) report_.add_ratio(nessie(kArgument, size), nessie(bulk, size));
    for (const char *mode : kModes)
      for (const auto &it : rivals_)
        report_.add_ratio(nessie(mode, size), series(name_of(it.rival), name_of(it.network), it.mode(kArgument), size));
  }
}

}  // namespace

Status rpc_size(const Options &options, Report &report) {
  Sizes sizes(options, report);
  return compare_on_fit_cores(options.repetitions(9, 3), report, "arguments and bulk", sizes);
}

}  // namespace bench
