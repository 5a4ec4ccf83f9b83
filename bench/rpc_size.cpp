// SPDX-License-Identifier: BSD-3-Clause
// rpc-size: how long a call takes that brings so many bytes along as its argument, encoded and decoded; and one whose
// handler gets them out of a registered buffer into one of its own. Beside gRPC's and libtirpc's arguments.
#include "comparison.hpp"
#include "page_aligned.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

constexpr const char *kArgument = "argument", *kMapped = "bulk-mapped", *kApplication = "bulk-application";

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {8, 64 << 10};
  return {8, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
}

int calls_per_batch(std::uint64_t size) { return std::min(transfers_per_batch(size), kRoundTrips); }

class Sizes final : public Comparison {
 public:
  Sizes(const Options &options, Report &report)
      : Comparison(options, report, {"round_trip_us", "us"}), sizes_(sizes_for(options)) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Status lead(RpcClient &client, Lane &lane) const;

  std::vector<Rival> rivals_ = rpc_rivals_here();
  std::vector<std::uint64_t> sizes_;
};

Status Sizes::lead(RpcClient &client, Lane &lane) const {
  PageAligned<std::byte> memory(sizes_.back(), std::byte{1});
  auto mapped = client.allocate(memory.size()), application = client.lend(memory);
  if (!mapped || !application) return mapped ? application.error() : mapped.error();
  for (auto size : sizes_) {
    const block bytes(size, std::byte{1});
    const int calls = calls_per_batch(size);
    const auto time_bulk = [&](const nnti::RegisteredBuffer &buffer) {
      return typical_us(calls, [&](bool) {
        std::ranges::copy(bytes, buffer.bytes().begin());  // new bytes for each call, as arguments are
        client.call(Bench::TAKE_BULK, buffer, size);
      });
    };
    lane.leave(kArgument, size, typical_us(calls, [&](bool) { client.call(Bench::TAKE, bytes); }));
    lane.leave(kMapped, size, time_bulk(*mapped));
    lane.leave(kApplication, size, time_bulk(*application));
  }
  return {};
}

Status Sizes::measure() {
  auto status = add(run_rpc_team(options_, {.memory_bytes = sizes_.back()},
                                 [&](RpcClient &client, Lane &lane) { return lead(client, lane); }));
  return status.ok() ? ask(rivals_, {}, {{"take", sizes_, kArgument}}) : status;
}

void Sizes::add_ratios() {
  for (auto size : sizes_) {
    for (const char *bulk : {kMapped, kApplication}) compare(ours(kArgument, size), ours(bulk, size));
    for (const char *mode : {kArgument, kMapped, kApplication})
      for (const auto &rival : rivals_) compare(ours(mode, size), theirs(rival, kArgument, size));
  }
}

}  // namespace

Status rpc_size(const Options &options, Report &report) {
  return Sizes(options, report).run_on_fit_cores(options.repetitions(9, 3), "arguments and bulk");
}

}  // namespace bench
