// SPDX-License-Identifier: BSD-3-Clause
// access-latency: a no-op, and accesses of 1 B to 16 MiB to a service's memory, one after the other. Read: the handler
// puts the bytes into the client's buffer; write: it gets them out of it. Beside MPI's and UCX's put and get of the
// same bytes, for which nobody has to be asked, and copies by the kernel.
#include "baselines.hpp"
#include "page_aligned.hpp"
#include "repeat.hpp"
#include "rivals.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

constexpr const char *kNothing = "no-op";
/// A way to access, and what the others call it.
struct Access {
  const char *mode;
  Procedure procedure;
  bool is_mapped;  ///< the client's buffer is Nessie's; otherwise the application's own
  const char *of_rivals, *of_kernel;
};
constexpr Access kAccesses[] = {
    {"read-mapped", Bench::GIVE_BULK, true, "get", "process_vm_readv"},
    {"write-mapped", Bench::TAKE_BULK, true, "put", "process_vm_writev"},
    {"read-application", Bench::GIVE_BULK, false, "get", "process_vm_readv"},
    {"write-application", Bench::TAKE_BULK, false, "put", "process_vm_writev"},
};

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {1, 4096};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 1; size <= 16 << 20; size *= options.quick ? 16 : 4) sizes.push_back(size);
  return sizes;
}

Series series(const std::string &system, const std::string &transport, const std::string &mode, std::uint64_t size) {
  return {system, transport, mode, size, 1, "round_trip_us", "us"};
}

class AccessLatency {
 public:
  AccessLatency(const Options &options, Report &report)
      : options_(options),
        report_(report),
        network_(network_of(options.transport)),
        rivals_(rivals_here()),
        sizes_(sizes_for(options)) {}
  Status measure(int repetition);
  void add_ratios();

 private:
  Status lead(RpcClient &client, Lane &lane) const;
  Status ours();
  Status rivals();
  Status kernel();
  void add(const std::string &system, const std::string &transport, const std::string &mode, const TimesBySize &times) {
    for (auto [size, us] : times) report_.add(series(system, transport, mode, size), repetition_, us);
  }

  const Options &options_;
  Report &report_;
  Network network_;
  std::vector<Rival> rivals_;
  std::vector<std::uint64_t> sizes_;
  int repetition_ = 0;
};

Status AccessLatency::lead(RpcClient &client, Lane &lane) const {
  PageAligned<std::byte> memory(sizes_.back(), std::byte{1});
  auto mapped = client.allocate(memory.size()), application = client.lend(memory);
  if (!mapped || !application) return mapped ? application.error() : mapped.error();
  auto *next = lane.values.data();
  *next++ = typical_us(kRoundTrips, [&](bool) { client.call(Bench::NOTHING); });
  for (const auto &access : kAccesses) {
    const auto &buffer = access.is_mapped ? *mapped : *application;
    for (auto size : sizes_)
      *next++ = typical_us(std::min(transfers_per_batch(size), kRoundTrips),
                           [&](bool) { client.call(access.procedure, buffer, size); });
  }
  return {};
}

Status AccessLatency::ours() {
  RpcTeam team;
  team.memory_bytes = sizes_.back();
  auto board = board_for(team);
  auto status = run_rpc_team(options_, team, *board, [&](RpcClient &client, Lane &lane) { return lead(client, lane); });
  if (!status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  add("nessie", options_.transport, kNothing, {{0, *value++}});
  for (const auto &access : kAccesses)
    for (auto size : sizes_) add("nessie", options_.transport, access.mode, {{size, *value++}});
  return {};
}

Status AccessLatency::rivals() {
  for (auto rival : rivals_) {
    auto answers = ask(rival, {network_}, {{"round-trip", {8}}, {"get", sizes_}, {"put", sizes_}});
    if (!answers) return answers.error();
    add(name_of(rival), name_of(network_), "round-trip", (*answers)["round-trip"]);
    for (const char *mode : {"get", "put"}) add(name_of(rival), name_of(network_), mode, (*answers)[mode]);
  }
  return {};
}

Status AccessLatency::kernel() {
  auto times = copy_times(sizes_);
  if (!times) return times.error();
  add("process_vm_readv", "kernel", "get", times->process_vm_readv);
  add("process_vm_writev", "kernel", "put", times->process_vm_writev);
  return {};
}

Status AccessLatency::measure(int repetition) {
  repetition_ = repetition;
  auto status = ours();
  if (status.ok()) status = rivals();
  if (status.ok()) status = kernel();
  return status;
}

void AccessLatency::add_ratios() {
  for (auto rival : rivals_)
    report_.add_ratio(series("nessie", options_.transport, kNothing, 0),
                      series(name_of(rival), name_of(network_), "round-trip", 8));
  for (const auto &access : kAccesses)
    for (auto size : sizes_) {
      const auto ours = series("nessie", options_.transport, access.mode, size);
      for (auto rival : rivals_)
        report_.add_ratio(ours, series(name_of(rival), name_of(network_), access.of_rivals, size));
      report_.add_ratio(ours, series(access.of_kernel, "kernel", access.of_rivals, size));
    }
}

}  // namespace

Status access_latency(const Options &options, Report &report) {
  AccessLatency accesses(options, report);
  return compare_on_fit_cores(options.repetitions(9, 3), report, "accesses", accesses);
}

}  // namespace bench
