// SPDX-License-Identifier: BSD-3-Clause
// access-latency: a no-op, and accesses of 1 B to 16 MiB to a service's memory, one after the other. Read: the handler
// puts the bytes into the client's buffer; write: it gets them out of it. Beside MPI's and UCX's put and get of the
// same bytes, for which nobody has to be asked, and copies by the kernel.
#include "baselines.hpp"
#include "comparison.hpp"
#include "page_aligned.hpp"
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
  return sizes_between(1, 16 << 20, options.quick ? 16 : 4);
}

class AccessLatency final : public Comparison {
 public:
  AccessLatency(const Options &options, Report &report)
      : Comparison(options, report, {"round_trip_us", "us"}), sizes_(sizes_for(options)) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Status lead(RpcClient &client, Lane &lane) const;
  Status kernel();

  std::vector<Rival> rivals_ = rivals_here(network_);
  std::vector<std::uint64_t> sizes_;
};

Status AccessLatency::lead(RpcClient &client, Lane &lane) const {
  PageAligned<std::byte> memory(sizes_.back(), std::byte{1});
  auto mapped = client.allocate(memory.size()), application = client.lend(memory);
  if (!mapped || !application) return mapped ? application.error() : mapped.error();
  lane.leave(kNothing, 0, typical_us(kRoundTrips, [&](bool) { client.call(Bench::NOTHING); }));
  for (const auto &access : kAccesses) {
    const auto &buffer = access.is_mapped ? *mapped : *application;
    for (auto size : sizes_)
      lane.leave(access.mode, size, typical_us(std::min(transfers_per_batch(size), kRoundTrips), [&](bool) {
                   client.call(access.procedure, buffer, size);
                 }));
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

Status AccessLatency::measure() {
  auto status = add(run_rpc_team(options_, {.memory_bytes = sizes_.back()},
                                 [&](RpcClient &client, Lane &lane) { return lead(client, lane); }));
  if (status.ok())
    status = ask(rivals_, {}, {{"round-trip", {8}, "round-trip"}, {"get", sizes_, "get"}, {"put", sizes_, "put"}});
  return status.ok() ? kernel() : status;
}

void AccessLatency::add_ratios() {
  for (const auto &rival : rivals_) compare(ours(kNothing, 0), theirs(rival, "round-trip", 8));
  for (const auto &access : kAccesses)
    for (auto size : sizes_) {
      for (const auto &rival : rivals_) compare(ours(access.mode, size), theirs(rival, access.of_rivals, size));
      compare(ours(access.mode, size), series(access.of_kernel, "kernel", access.of_rivals, size));
    }
}

}  // namespace

Status access_latency(const Options &options, Report &report) {
  return AccessLatency(options, report).run_on_fit_cores(options.repetitions(9, 3), "accesses");
}

}  // namespace bench
