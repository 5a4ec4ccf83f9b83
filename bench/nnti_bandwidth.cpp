// SPDX-License-Identifier: BSD-3-Clause
// nnti-bandwidth: one-sided put and get between two processes, of memory that Nessie allocated ("mapped": a peer on
// this node maps it) and of the application's own, and puts in both directions at once. memcpy, process_vm_readv and
// writev show what the machine allows; MPI, UCX and a TCP socket what others make of it.
#include "baselines.hpp"
#include "nnti_team.hpp"
#include "one_sided.hpp"
#include "page_aligned.hpp"
#include "rivals.hpp"
#include "sockets.hpp"
#include "timing.hpp"

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

Series series(const std::string &system, const std::string &transport, const std::string &mode, std::uint64_t size) {
  return {system, transport, mode, size, 1, "bandwidth_MBps", "MB/s"};
}

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {4 << 10, 1 << 20};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 4 << 10; size <= 64 << 20; size *= options.quick ? 16 : 4) sizes.push_back(size);
  return sizes;
}

class Bandwidth {
 public:
  Bandwidth(const Options &options, Report &report)
      : options_(options),
        report_(report),
        network_(network_of(options.transport)),
        rivals_(rivals_here()),
        sizes_(sizes_for(options)) {}
  Status measure(int repetition);
  void add_ratios();

 private:
  Status one_sided();
  Status both_ways();
  Status copies();
  Status others();
  Status socket();
  void add(const std::string &system, const std::string &transport, const std::string &mode, const TimesBySize &times,
           int directions = 1);

  const Options &options_;
  Report &report_;
  Network network_;
  std::vector<Rival> rivals_;
  std::vector<std::uint64_t> sizes_;
  int repetition_ = 0;
};

void Bandwidth::add(const std::string &system, const std::string &transport, const std::string &mode,
                    const TimesBySize &times, int directions) {
  for (auto [size, us] : times)
    report_.add(series(system, transport, mode, size), repetition_, directions * megabytes_per_s(size, us));
}

Status Bandwidth::one_sided() {
  auto times = one_sided_times(options_, sizes_);
  if (!times) return times.error();
  for (const char *mode : kOneSided) add("nessie", options_.transport, mode, (*times)[mode]);
  return {};
}

Status Bandwidth::both_ways() {
  Team team;
  team.memory_bytes = sizes_.back();
  team.takes_orders = true;
  auto board = board_for(team);
  auto status = run_team(options_, team, *board, [&](Leader &leader, Lane &lane) -> Status {
    PageAligned<std::byte> memory(sizes_.back(), std::byte{2});
    auto own = leader.endpoint().allocate(memory.size(), nnti::Rights::kReadWrite);
    if (!own) return own.error();
    auto ours = own->describe_for(leader.follower());
    if (!ours) return ours.error();
    auto *next = lane.values.data();
    for (auto size : sizes_)
      *next++ = typical_us(transfers_per_batch(size), [&](bool) {
        leader.put_both_ways(leader.lent().mapped, std::span(memory).first(size), *ours);
      });
    return {};
  });
  if (!status.ok()) return status;
  TimesBySize times;
  for (std::size_t i = 0; i < sizes_.size(); ++i) times[sizes_[i]] = board->lane(0).values[i];
  add("nessie", options_.transport, "bidirectional", times, 2);
  return {};
}

Status Bandwidth::copies() {
  auto times = copy_times(sizes_);
  if (!times) return times.error();
  add("memcpy", "memory", "get", times->memcpy_get);
  add("memcpy", "memory", "put", times->memcpy_put);
  add("process_vm_readv", "kernel", "get", times->process_vm_readv);
  add("process_vm_writev", "kernel", "put", times->process_vm_writev);
  return {};
}

Status Bandwidth::others() {
  for (auto rival : rivals_) {
    std::vector<Question> questions{{"get", sizes_}, {"put", sizes_}, {"both-ways", sizes_}};
    if (can_answer(rival, "transfer")) questions.push_back({"transfer", sizes_});
    auto answers = ask(rival, {network_}, questions);
    if (!answers) return answers.error();
    const char *name = name_of(rival), *network = name_of(network_);
    add(name, network, "get", (*answers)["get"]);
    add(name, network, "put", (*answers)["put"]);
    add(name, network, "bidirectional", (*answers)["both-ways"], 2);
    add(name, network, "send", (*answers)["transfer"]);
  }
  return {};
}

Status Bandwidth::socket() {
  if (network_ != Network::kTcp) return {};
  auto times = socket_transfers(SocketKind::kTcpLoopback, sizes_);
  if (!times) return times.error();
  add("socket", "tcp", "send", *times);
  return {};
}

Status Bandwidth::measure(int repetition) {
  repetition_ = repetition;
  auto status = one_sided();
  if (status.ok()) status = copies();
  if (status.ok()) status = both_ways();
  if (status.ok()) status = others();
  if (status.ok()) status = socket();
  return status;
}

void Bandwidth::add_ratios() {
  for (auto size : sizes_) {
    auto compare = [&](const std::string &mode, const char *system, const char *transport, const char *theirs) {
      report_.add_ratio(series("nessie", options_.transport, mode, size), series(system, transport, theirs, size));
    };
    for (std::string what : {"get", "put"}) {
      compare(what + "-mapped", "memcpy", "memory", what.c_str());
      compare(what + "-application", what == "get" ? "process_vm_readv" : "process_vm_writev", "kernel", what.c_str());
      for (auto rival : rivals_) compare(what + "-mapped", name_of(rival), name_of(network_), what.c_str());
      for (const char *kind : {"-mapped", "-application"}) {
        for (auto rival : rivals_) compare(what + kind, name_of(rival), name_of(network_), "send");
        compare(what + kind, "socket", "tcp", "send");
      }
    }
    for (auto rival : rivals_) compare("bidirectional", name_of(rival), name_of(network_), "bidirectional");
  }
}

}  // namespace

Status nnti_bandwidth(const Options &options, Report &report) {
  Bandwidth bandwidth(options, report);
  int repetitions = options.repetitions(9, 3);
  Progress progress(repetitions);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    progress.step("put and get");
    if (auto status = bandwidth.measure(repetition); !status.ok()) return status;
  }
  bandwidth.add_ratios();
  return {};
}

}  // namespace bench
