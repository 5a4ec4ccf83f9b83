// SPDX-License-Identifier: BSD-3-Clause
// rpc-statistics: what it costs a call that the runtimes of both sides count it, and that they trace one in 1000, or
// each.
#include "repeat.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace bench {
namespace {

using nessie::Status;

struct Variant {
  const char *mode;
  const char *statistics;  ///< nssi.statistics
  const char *every;       ///< one of so many calls is traced; empty: none
  int calls;               ///< in a batch; a trace of each takes a kilobyte
};
constexpr Variant kOff{"off", "off", "", 20'000};
constexpr Variant kVariants[] = {
    kOff, {"on", "on", "", 20'000}, {"traced-1000", "on", "1000", 20'000}, {"traced", "on", "1", 1'000}};

struct Handling {
  const char *suffix;
  Procedure procedure;
};
constexpr Handling kHandlings[] = {{"-short", Bench::NOTHING_SHORT}, {"", Bench::NOTHING}};

/// A folder for traces, which goes with it.
class TraceFolder {
 public:
  TraceFolder() {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TraceFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TraceFolder(const TraceFolder &) = delete;
  /// Empty: it could not be made, and errno says why.
  const std::string &path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "nessie-bench-XXXXXX").string();
};

class Statistics {
 public:
  Statistics(const Options &options, Report &report, std::string folder)
      : options_(options), report_(report), folder_(std::move(folder)) {}

  /// Each variant is the first one in its turn: what comes later finds a warmer machine.
  Status measure(int repetition) {
    const auto count = std::size(kVariants);
    for (std::size_t i = 0; i < count; ++i)
      if (auto status = measure(kVariants[(i + static_cast<std::size_t>(repetition)) % count], repetition);
          !status.ok())
        return status;
    return {};
  }
  void add_ratios() {
    for (const auto &handling : kHandlings)
      for (const auto &variant : kVariants)
        if (variant.mode != kOff.mode) report_.add_ratio(series(variant, handling), series(kOff, handling));
  }

 private:
  Status measure(const Variant &variant, int repetition) {
    auto options = options_;
    options.settings["nssi.statistics"] = variant.statistics;
    if (*variant.every) options.settings.insert({{"nssi.trace", folder_}, {"nssi.trace.every", variant.every}});
    RpcTeam team;
    auto board = board_for(team);
    auto status = run_rpc_team(options, team, *board, [&](RpcClient &client, Lane &lane) {
      auto *next = lane.values.data();
      for (const auto &handling : kHandlings)
        *next++ = typical_us(options_.once ? 10 : variant.calls, [&](bool) { client.call(handling.procedure); });
      return client.status();
    });
    if (!status.ok()) return status;
    const auto *value = board->lane(0).values.data();
    for (const auto &handling : kHandlings) report_.add(series(variant, handling), repetition, *value++);
    return {};
  }
  Series series(const Variant &variant, const Handling &handling) const {
    return {"nessie", options_.transport, std::string(variant.mode) + handling.suffix, 0, 1, "round_trip_us", "us"};
  }

  const Options &options_;
  Report &report_;
  const std::string folder_;
};

}  // namespace

Status rpc_statistics(const Options &options, Report &report) {
  const TraceFolder folder;
  if (folder.path().empty())
    return nessie::Error{nessie::Code::kIo, "no folder can be made for traces; see TMPDIR", {}, errno};
  Statistics statistics(options, report, folder.path());
  return compare_on_fit_cores(options.repetitions(21, 7), report, "calls", statistics);
}

}  // namespace bench
