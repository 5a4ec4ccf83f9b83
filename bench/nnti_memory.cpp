// SPDX-License-Identifier: BSD-3-Clause
// nnti-memory: what a peer costs: the growth of a process that holds 1 to 1000 of them, and of the one in which they
// live.
#include "many_peers.hpp"
#include "options.hpp"
#include "timing.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace bench {
namespace {

using nessie::Status;

constexpr int kMessages = 256;
constexpr std::uint64_t kMessageBytes = 64;

/// When a process is looked at.
enum Look : std::size_t { kBefore, kConnected, kUsed, kLooks };
constexpr const char *kLookNames[] = {"before", "connected", "used"};

/// This process's memory in user space: its own pages, and of pages that n processes map, 1/n.
double proportional_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;)
    if (double kibibytes = 0; word == "Pss:" && rollup >> kibibytes) return kibibytes * 1024;
  return 0;
}

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
    for (const char *job_size : kJobSizes)
      for (int count : peers)
        if (auto status = measure(options, job_size, count, repetition, report); !status.ok()) return status;
  }
  for (const char *job_size : kJobSizes)
    for (const char *who : {"holder", "guest"})
      report.add_ratio(series(options, who, kUsed, job_size, peers.back()),
                       series(options, who, kUsed, kJobSizes[0], peers.back()));
  return {};
}

}  // namespace bench
