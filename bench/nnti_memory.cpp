// SPDX-License-Identifier: BSD-3-Clause
// nnti-memory: what a peer costs: the growth of a process that holds 1 to 1000 of them, and of the one in which they
// live; beside what it should be by what the transport allocates, and that for jobs on 10,000 nodes.
#include "machine.hpp"
#include "many_peers.hpp"
#include "options.hpp"
#include "timing.hpp"

#include "nnti/endpoint/footprint.hpp"

#include <fmt/format.h>

#include <string>

namespace bench {
namespace {

using nessie::Status;

constexpr int kMessages = 256;
constexpr std::uint64_t kMessageBytes = 64;

/// When a process is looked at.
enum Look : std::size_t { kBefore, kConnected, kUsed, kLooks };
constexpr const char *kLookNames[] = {"before", "connected", "used"};

/// Both look at the same time, and go on when both have.
Status look(Board &board, Lane &lane, Look at) {
  int before = 2 * static_cast<int>(at) + 1;
  bool all = board.meet(2, before);
  lane.values[at] = proportional_bytes();
  all = all && board.meet(2, before + 1);
  if (!all) return nessie::Error{nessie::Code::kTimedOut, "the other process of the workload did not come"};
  return {};
}

/// One peer more than are counted, used before they come: what only the first one costs is not theirs.
Status hold(Holder &holder, Board &board, Lane &lane, int peers) {
  holder.answer(kMessages);
  if (auto status = look(board, lane, kBefore); !status.ok()) return status;
  holder.wait_for_peers(1 + peers);
  if (auto status = look(board, lane, kConnected); !status.ok()) return status;
  holder.answer(static_cast<std::uint64_t>(peers) * kMessages);
  return look(board, lane, kUsed);
}

Status use(Guests &guests, std::size_t first) {
  std::vector<std::byte> message(kMessageBytes, std::byte{1});
  for (std::size_t i = first; i < guests.size(); ++i) {
    for (int sent = 0; sent < kMessages; sent += kWindow) guests[i].exchange(message, kWindow, kWindow);
    if (!guests[i].trouble().ok()) return guests[i].trouble();
  }
  return {};
}

Status visit(Guests &guests, Board &board, Lane &lane, int peers) {
  if (auto status = guests.connect(1); !status.ok()) return status;
  if (auto status = use(guests, 0); !status.ok()) return status;
  if (auto status = look(board, lane, kBefore); !status.ok()) return status;
  if (auto status = guests.connect(1 + peers); !status.ok()) return status;
  if (auto status = look(board, lane, kConnected); !status.ok()) return status;
  if (auto status = use(guests, 1); !status.ok()) return status;
  return look(board, lane, kUsed);
}

/// The sizes of job (nnti.job_size) for which channels are sized differently.
constexpr const char *kJobSizes[] = {"1024", "16384", "65536"};

/// How messages go, and the sizes of job that are tried with it.
struct Channel {
  const char *setting;  ///< empty: as --set says
  std::vector<const char *> job_sizes;
};
std::vector<Channel> channels(const Options &options) {
  std::vector<Channel> all{{"", {std::begin(kJobSizes), std::end(kJobSizes)}}};
  if (!options.settings.contains("nnti.channel") && options.transport == "shm")
    all.push_back({"shared-queue", {kJobSizes[0]}});  // its entries do not shrink
  return all;
}

/// "holder-used-1024", or with `--set nnti.channel=mailbox` "mailbox-holder-used-1024".
Series series(const Options &options, const char *who, Look at, const std::string &job_size, int peers) {
  auto channel = options.settings.find("nnti.channel");
  auto kind = channel == options.settings.end() ? "" : channel->second + "-";
  auto mode = fmt::format("{}{}-{}-{}", kind, who, kLookNames[at], job_size);
  return {"nessie", options.transport, mode, 0, peers, "memory_bytes", "B"};
}

Status measure(const Options &options, const std::string &job_size, int peers, int repetition, Report &report) {
  Board board(2);
  auto settings = options;
  settings.settings["nnti.job_size"] = job_size;
  auto status =
      run_holder_and_guests(settings, kDefaultWait, board,
                            {[&](Holder &holder, Board &all, Lane &lane) { return hold(holder, all, lane, peers); },
                             [&](Guests &guests, Board &all, Lane &lane) { return visit(guests, all, lane, peers); }});
  if (!status.ok()) return status;
  for (int member : {kHolder, kGuests})
    for (auto at : {kConnected, kUsed}) {
      const auto &bytes = board.lane(member).values;
      report.add(series(options, member == kHolder ? "holder" : "guest", at, job_size, peers), repetition,
                 (bytes[at] - bytes[kBefore]) / peers);
    }
  return {};
}

// --- what it should be ------------------------------------------------------------------------------------------------

nnti::shm::ChannelKind kind_of(const Options &options) {
  auto channel = options.settings.find("nnti.channel");
  const bool queue = channel != options.settings.end() && channel->second == "shared-queue";
  return queue ? nnti::shm::ChannelKind::kSharedQueue : nnti::shm::ChannelKind::kMailbox;
}

nnti::shm::Footprint footprint(nnti::shm::ChannelKind kind, std::int64_t job_size) {
  return nnti::shm::footprint_of_peer(kind, nnti::shm::slots_in(nnti::shm::mailbox_bytes_for(job_size)));
}

/// Beside what the holder was measured to grow by: what the transport allocates for a peer there. Each guest has a
/// shared queue of its own, half of which counts here as far as our answers have filled it.
void compute_holder(const Options &options, const std::string &job_size, int peers, int repetition, Report &report) {
  if (options.transport != "shm" || options.settings.contains("nnti.mailbox")) return;
  auto bytes = footprint(kind_of(options), std::stoll(job_size));
  if (kind_of(options) == nnti::shm::ChannelKind::kSharedQueue)
    bytes.used += static_cast<double>(nnti::shm::footprint_of_queue(kMessages)) / 2;
  for (auto at : {kConnected, kUsed}) {
    const auto ours = series(options, "holder", at, job_size, peers);
    auto computed = ours;
    computed.system = "computed";
    report.add(computed, repetition, at == kConnected ? bytes.connected : bytes.used);
    if (repetition == 0) report.add_ratio(ours, computed);
  }
}

/// Table 1 of the uGNI paper, for 10,000 nodes: memory of a peer, and of one process if it has used all peers of its
/// node, and if it had a channel like that to all of the job. Of n shared queues that n processes map, each process
/// counts one.
void compute_large_jobs(Report &report) {
  constexpr std::int64_t kNodes = 10'000;
  using nnti::shm::ChannelKind;
  for (const auto kind : {ChannelKind::kMailbox, ChannelKind::kSharedQueue})
    for (const std::int64_t on_node : {1, 16, 64}) {
      const auto job = kNodes * on_node;
      const auto peer = footprint(kind, job).used;
      const bool queue = kind == ChannelKind::kSharedQueue;
      const auto once = queue ? nnti::shm::footprint_of_queue(nnti::shm::kDefaultQueueEntries) : 0;
      auto add = [&](const char *of, std::int64_t peers, double bytes) {
        const auto mode = fmt::format("{}x{}-{}-{}", kNodes, on_node, queue ? "shared-queue" : "mailbox", of);
        report.add({"computed", "shm", mode, 0, static_cast<int>(peers), "memory_bytes", "B"}, 0, bytes);
      };
      add("peer", 1, peer);
      for (auto [of, peers] : {std::pair{"node", on_node - 1}, {"job", job - 1}})
        add(of, peers, static_cast<double>(peers) * peer + (peers > 0 ? static_cast<double>(once) : 0));
    }
}

std::vector<int> peers_for(const Options &options) {
  if (options.once) return {1, 10};
  return {1, 10, 100, 1000};
}

}  // namespace

Status nnti_memory(const Options &options, Report &report) {
  int repetitions = options.repetitions(3, 1);
  auto peers = peers_for(options);
  Progress progress(repetitions);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    progress.step("memory of peers");
    for (const auto &channel : channels(options)) {
      auto settings = options;
      if (*channel.setting) settings.settings["nnti.channel"] = channel.setting;
      for (const char *job_size : channel.job_sizes)
        for (int count : peers) {
          if (auto status = measure(settings, job_size, count, repetition, report); !status.ok()) return status;
          compute_holder(settings, job_size, count, repetition, report);
        }
    }
  }
  compute_large_jobs(report);
  for (const char *job_size : kJobSizes)
    for (const char *who : {"holder", "guest"})
      report.add_ratio(series(options, who, kUsed, job_size, peers.back()),
                       series(options, who, kUsed, kJobSizes[0], peers.back()));
  return {};
}

}  // namespace bench
