// SPDX-License-Identifier: BSD-3-Clause
// Design notes. The cable is measured twice. As the kernel makes it, it carries as much as the processors can copy:
// both hosts share them, and the copies compete with the program's and the server's work, which on two machines they
// would not. So it is also measured with a rate of 1 GB/s, as a network of 10 Gbit/s has, which leaves processors free.
#include "launch_hosts.hpp"

#include "comparison.hpp"
#include "staging_figures.hpp"
#include "staging_team.hpp"
#include "tcp_streams.hpp"
#include "two_hosts.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Status;
using Words = std::vector<std::string>;

constexpr auto kLimit = std::chrono::seconds(120), kStart = std::chrono::seconds(30);
constexpr const char *kName = "bench";
constexpr std::array kStreams{1, 2, 4};
constexpr std::uint64_t kPiece = 4 << 20;  ///< of a put

struct Cable {
  const char *mode, *rate;
};
constexpr Cable kCables[] = {{"cable-1GBps", "8gbit"}, {"cable-unlimited", ""}};

/// Ends what it was told to begin, however the scope is left.
class Serving {
 public:
  Serving(const TwoHosts &hosts, const std::filesystem::path &home)
      : hosts_(hosts),
        home_("HOME=" + home.string()),
        record_(home / fmt::format(".local/state/nessie/serve/{}.json", kName)),
        command_(hosts.on(
            1, {"env", home_, sibling("nessie"), "serve", "--foreground", "--mode", "caching", "--name", kName})),
        server_([this](int, int to_parent) -> int { exec_program(command_, {}, to_parent, to_parent); }) {}

  Status await_begin() const {
    for (const auto until = std::chrono::steady_clock::now() + kStart; !std::filesystem::exists(record_);) {
      if (std::chrono::steady_clock::now() > until) return Error{Code::kTimedOut, "`nessie serve` does not begin"};
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
  }

  /// Waits until the data are in their file.
  Status end() {
    const auto stopped = run_program(hosts_.on(1, {"env", home_, sibling("nessie"), "stop", kName}), kLimit);
    if (!stopped) return stopped.error();
    if (server_.wait(kLimit) == Partner::End::kWell) return {};
    return Error{Code::kIo, "`nessie serve` has failed"};
  }

 private:
  const TwoHosts &hosts_;
  const std::string home_;
  const std::filesystem::path record_;
  const Words command_;
  Partner server_;
};

class Hosts final : public Comparison {
 public:
  Hosts(const Options &options, Report &report, const Cable &cable, const TwoHosts &hosts)
      : Comparison(options, report, {"perceived_MBps", "MB/s"}),
        cable_(cable),
        hosts_(hosts),
        bytes_(options.once    ? 4 * kPiece
               : options.quick ? 64 * kPiece
                               : 256 * kPiece) {}

 private:
  Status measure() override {
    for (const bool second : {false, true}) {
      auto status = second != (repetition() % 2 == 1) ? measure_staged() : measure_streams();
      if (!status.ok()) return status;
    }
    return {};
  }

  Status measure_streams() {
    for (const int streams : kStreams) {
      const auto measured = tcp_bandwidth(hosts_, streams, bytes_);
      if (!measured) return measured.error();
      add(streams_series(streams), *measured);
    }
    return {};
  }

  Status measure_staged() {
    files_.clear();
    if (::chown(files_.path().c_str(), TwoHosts::kUser, TwoHosts::kUser) != 0)
      return Error{Code::kIo, "cannot give away a folder", {}, errno};
    Serving server(hosts_, files_.path());
    if (auto status = server.await_begin(); !status.ok()) return status;
    const auto run = run_program(program(), kLimit);
    if (!run) return run.error();
    const auto figures = native_figures({*run, run->last_output});
    if (!figures) return figures.error();
    if (run->output.find("not staged") != std::string::npos)
      return Error{Code::kIo, "the program was not staged: " + run->output};
    add(ours(cable_.mode, bytes_), figures->at("perceived_MBps"));
    return server.end();
  }

  /// With what `nessie attach` says.
  Words program() const {
    Words words{"env",
                "HOME=" + files_.path().string(),
                "sh",
                "-c",
                "exec \"$@\" 2>&1",
                "sh",
                sibling("nessie"),
                "attach",
                kName,
                "--"};
    const auto mpi =
        mpiexec(1, {sibling("nessie-bench-contiguous"), "--transfers", std::to_string(bytes_ / kPiece), "--transfer",
                    std::to_string(kPiece >> 10), "--prefix", (files_.path() / "out").string()});
    words.insert(words.end(), mpi.begin(), mpi.end());
    return hosts_.on(0, words);
  }

  void add_ratios() override {
    auto best = streams_series(kStreams.front());
    for (const int streams : kStreams)
      if (report_.median(streams_series(streams)) > report_.median(best)) best = streams_series(streams);
    compare(ours(cable_.mode, bytes_), best);
  }

  Series ours(const std::string &mode, std::uint64_t size) const { return series("nessie", "network", mode, size); }
  Series streams_series(int streams) const {
    return series("socket", "tcp", fmt::format("{}-{}-streams", cable_.mode, streams), bytes_);
  }

  const Cable &cable_;
  const TwoHosts &hosts_;
  const std::uint64_t bytes_;
  const Scratch files_{false};
};

}  // namespace

Status compare_hosts(const Options &options, Report &report) {
  for (const auto &cable : kCables) {
    const auto hosts = TwoHosts::make(cable.rate);
    if (hosts.code() == Code::kUnsupported) return report.note(hosts.error().message + "."), Status();
    if (!hosts) return hosts.error();
    Hosts comparison(options, report, cable, **hosts);
    if (auto status = comparison.run(options.repetitions(7, 3), cable.mode); !status.ok()) return status;
  }
  return {};
}

}  // namespace bench
