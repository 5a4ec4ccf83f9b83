// SPDX-License-Identifier: BSD-3-Clause
// rpc-statistics: what it costs a call that the runtimes of both sides count it, and that they trace one in 1000, or
// each.
#include "comparison.hpp"
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

class Statistics final : public Comparison {
 public:
  Statistics(const Options &options, Report &report, std::string folder)
      : Comparison(options, report, {"round_trip_us", "us"}), folder_(std::move(folder)) {}

 private:
  /// Each variant is the first one in its turn: what comes later finds a warmer machine.
  Status measure() override {
    const auto count = std::size(kVariants);
    for (std::size_t i = 0; i < count; ++i)
      if (auto status = measure(kVariants[(i + static_cast<std::size_t>(repetition())) % count]); !status.ok())
        return status;
    return {};
  }
  void add_ratios() override {
    for (const auto &handling : kHandlings)
      for (const auto &variant : kVariants)
        if (variant.mode != kOff.mode) compare(ours(mode(variant, handling), 0), ours(mode(kOff, handling), 0));
  }
  Status measure(const Variant &variant) {
    auto options = options_;
    options.settings["nssi.statistics"] = variant.statistics;
    if (*variant.every) options.settings.insert({{"nssi.trace", folder_}, {"nssi.trace.every", variant.every}});
    const int calls = options_.once ? 10 : variant.calls;
    return add(run_rpc_team(options, {}, [&](RpcClient &client, Lane &lane) {
      for (const auto &handling : kHandlings)
        lane.leave(mode(variant, handling), 0, typical_us(calls, [&](bool) { client.call(handling.procedure); }));
      return client.status();
    }));
  }
  static std::string mode(const Variant &variant, const Handling &handling) {
    return std::string(variant.mode) + handling.suffix;
  }

  const std::string folder_;
};

}  // namespace

Status rpc_statistics(const Options &options, Report &report) {
  const TraceFolder folder;
  if (folder.path().empty())
    return nessie::Error{nessie::Code::kIo, "no folder can be made for traces; see TMPDIR", {}, errno};
  return Statistics(options, report, folder.path()).run_on_fit_cores(options.repetitions(21, 7), "calls");
}

}  // namespace bench
