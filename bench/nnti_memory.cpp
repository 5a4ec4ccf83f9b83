// SPDX-License-Identifier: BSD-3-Clause
// nnti-memory: what a peer costs: the growth of a process that holds 1 to 1000 of them, and of the one in which they
// live; beside what it should be by what the transport allocates, and that for jobs on 10,000 nodes.
#include "comparison.hpp"
#include "machine.hpp"
#include "many_peers.hpp"
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
enum Look : std::size_t { kBefore, kConnected, kUsed };
constexpr const char *kLookNames[] = {"before", "connected", "used"};

/// Both look at the same time, and go on when both have.
Status look(Board &board, Lane &lane, Look at) {
  int before = 2 * static_cast<int>(at) + 1;
  bool all = board.meet(2, before);
  lane.leave(kLookNames[at], 0, proportional_bytes());
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
std::string mode_of(const Options &options, const char *who, Look at, const std::string &job_size) {
  auto channel = options.settings.find("nnti.channel");
  auto kind = channel == options.settings.end() ? "" : channel->second + "-";
  return fmt::format("{}{}-{}-{}", kind, who, kLookNames[at], job_size);
}

class Memory final : public Comparison {
 public:
  Memory(const Options &options, Report &report) : Comparison(options, report, {"memory_bytes", "B"}) {
    if (!options.once) counts_ = {1, 10, 100, 1000};
  }

 private:
  Status measure() override;
  void add_ratios() override;
  Status measure(const Options &options, const std::string &job_size, int peers);
  void compute_holder(const Options &options, const std::string &job_size, int peers);
  void compute_large_jobs();

  std::vector<int> counts_{1, 10};  ///< of peers
};

Status Memory::measure(const Options &options, const std::string &job_size, int peers) {
  auto settings = options;
  settings.settings["nnti.job_size"] = job_size;
  const auto board =
      run_holder_and_guests(settings, kDefaultWait,
                            {[&](Holder &holder, Board &all, Lane &lane) { return hold(holder, all, lane, peers); },
                             [&](Guests &guests, Board &all, Lane &lane) { return visit(guests, all, lane, peers); }});
  if (!board) return board.error();
  for (int member : {kHolder, kGuests})
    for (auto at : {kConnected, kUsed}) {
      const auto bytes = (*board)->lane(member).figures();
      add(ours(mode_of(options, member == kHolder ? "holder" : "guest", at, job_size), 0, peers),
          (bytes[at].value - bytes[kBefore].value) / peers);
    }
  return {};
}

Status Memory::measure() {
  for (const auto &channel : channels(options_)) {
    auto settings = options_;
    if (*channel.setting) settings.settings["nnti.channel"] = channel.setting;
    for (const char *job_size : channel.job_sizes)
      for (int peers : counts_) {
        if (auto status = measure(settings, job_size, peers); !status.ok()) return status;
        compute_holder(settings, job_size, peers);
      }
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
void Memory::compute_holder(const Options &options, const std::string &job_size, int peers) {
  if (options.transport != "shm" || options.settings.contains("nnti.mailbox")) return;
  auto bytes = footprint(kind_of(options), std::stoll(job_size));
  if (kind_of(options) == nnti::shm::ChannelKind::kSharedQueue)
    bytes.used += static_cast<double>(nnti::shm::footprint_of_queue(kMessages)) / 2;
  for (auto at : {kConnected, kUsed}) {
    const auto mode = mode_of(options, "holder", at, job_size);
    const auto computed = series("computed", options.transport, mode, 0, peers);
    add(computed, at == kConnected ? bytes.connected : bytes.used);
    if (repetition() == 0) compare(ours(mode, 0, peers), computed);
  }
}

/// Table 1 of the uGNI paper, for 10,000 nodes: memory of a peer, and of one process if it has used all peers of its
/// node, and if it had a channel like that to all of the job. Of n shared queues that n processes map, each process
/// counts one.
void Memory::compute_large_jobs() {
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
        report_.add(series("computed", "shm", mode, 0, static_cast<int>(peers)), 0, bytes);
      };
      add("peer", 1, peer);
      for (auto [of, peers] : {std::pair{"node", on_node - 1}, {"job", job - 1}})
        add(of, peers, static_cast<double>(peers) * peer + (peers > 0 ? static_cast<double>(once) : 0));
    }
}

void Memory::add_ratios() {
  compute_large_jobs();
  const auto used = [&](const char *who, const char *job_size) {
    return ours(mode_of(options_, who, kUsed, job_size), 0, counts_.back());
  };
  for (const char *job_size : kJobSizes)
    for (const char *who : {"holder", "guest"}) compare(used(who, job_size), used(who, kJobSizes[0]));
}

}  // namespace

Status nnti_memory(const Options &options, Report &report) {
  return Memory(options, report).run(options.repetitions(3, 1), "memory of peers");
}

}  // namespace bench
