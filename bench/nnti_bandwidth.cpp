// SPDX-License-Identifier: BSD-3-Clause
// nnti-bandwidth: one-sided put and get between two processes, of memory that Nessie allocated ("mapped": a peer on
// this node maps it) and of the application's own, and puts in both directions at once. memcpy, process_vm_readv and
// writev show what the machine allows; MPI, UCX and a TCP socket what others make of it.
#include "baselines.hpp"
#include "comparison.hpp"
#include "nnti_team.hpp"
#include "one_sided.hpp"
#include "page_aligned.hpp"
#include "sockets.hpp"
#include "timing.hpp"

namespace bench {
namespace {

using nessie::Status;

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {4 << 10, 1 << 20};
  return sizes_between(4 << 10, 64 << 20, options.quick ? 16 : 4);
}

class Bandwidth final : public Comparison {
 public:
  Bandwidth(const Options &options, Report &report)
      : Comparison(options, report, {"bandwidth_MBps", "MB/s"}), sizes_(sizes_for(options)) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Status lead_both_ways(Leader &leader, Lane &lane) const;
  Status both_ways();
  Status copies();
  Status socket();

  std::vector<Rival> rivals_ = rivals_here(network_);
  std::vector<std::uint64_t> sizes_;
};

Status Bandwidth::lead_both_ways(Leader &leader, Lane &lane) const {
  PageAligned<std::byte> memory(sizes_.back(), std::byte{2});
  auto own = leader.endpoint().allocate(memory.size(), nnti::Rights::kReadWrite);
  if (!own) return own.error();
  auto ours = own->describe_for(leader.follower());
  if (!ours) return ours.error();
  for (auto size : sizes_) {
    const auto us = typical_us(transfers_per_batch(size), [&](bool) {
      leader.put_both_ways(leader.lent().mapped, std::span(memory).first(size), *ours);
    });
    lane.leave("bidirectional", size, megabytes_both_ways(us, size));
  }
  return {};
}

Status Bandwidth::both_ways() {
  return add(run_team(options_, {.takes_orders = true, .memory_bytes = sizes_.back()},
                      [&](Leader &leader, Lane &lane) { return lead_both_ways(leader, lane); }));
}

Status Bandwidth::copies() {
  auto times = copy_times(sizes_);
  if (!times) return times.error();
  add("memcpy", "memory", "get", times->memcpy_get, megabytes_per_s);
  add("memcpy", "memory", "put", times->memcpy_put, megabytes_per_s);
  add("process_vm_readv", "kernel", "get", times->process_vm_readv, megabytes_per_s);
  add("process_vm_writev", "kernel", "put", times->process_vm_writev, megabytes_per_s);
  return {};
}

Status Bandwidth::socket() {
  if (network_ != Network::kTcp) return {};
  return add("socket", "tcp", "send", socket_transfers(SocketKind::kTcpLoopback, sizes_), megabytes_per_s);
}

Status Bandwidth::measure() {
  auto status = add(run_one_sided(options_, sizes_));
  if (status.ok()) status = copies();
  if (status.ok()) status = both_ways();
  if (status.ok())
    status = ask(rivals_, {},
                 {{"get", sizes_, "get", megabytes_per_s},
                  {"put", sizes_, "put", megabytes_per_s},
                  {"both-ways", sizes_, "bidirectional", megabytes_both_ways},
                  {"transfer", sizes_, "send", megabytes_per_s}});
  return status.ok() ? socket() : status;
}

void Bandwidth::add_ratios() {
  for (auto size : sizes_) {
    for (const std::string what : {"get", "put"}) {
      const auto mapped = ours(what + "-mapped", size), application = ours(what + "-application", size);
      compare(mapped, series("memcpy", "memory", what, size));
      compare(application, series(what == "get" ? "process_vm_readv" : "process_vm_writev", "kernel", what, size));
      for (const auto &rival : rivals_) compare(mapped, theirs(rival, what, size));
      for (const auto &mine : {mapped, application}) {
        for (const auto &rival : rivals_) compare(mine, theirs(rival, "send", size));
        compare(mine, series("socket", "tcp", "send", size));
      }
    }
    for (const auto &rival : rivals_) compare(ours("bidirectional", size), theirs(rival, "bidirectional", size));
  }
}

}  // namespace

Status nnti_bandwidth(const Options &options, Report &report) {
  return Bandwidth(options, report).run(options.repetitions(9, 3), "put and get");
}

}  // namespace bench
