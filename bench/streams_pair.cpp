// SPDX-License-Identifier: BSD-3-Clause
// streams-pair: how long a step takes from one writer through a server to one reader, by the size of its array and how
// it is put; over TCP beside a socket, and beside ADIOS2's SST engine, which goes from writer to reader. Both in C++
// and in Python: SST is asked in Python (adios2_sst.py), and streams_python.py asks the same of Nessie.
#include "comparison.hpp"
#include "python.hpp"
#include "sockets.hpp"
#include "streams_team.hpp"
#include "timing.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::streams::StepState;

constexpr std::uint64_t kLarge = 16 << 20;
/// As many steps may wait between writer and reader, of everybody's: those with which SST is fastest.
int depth_of(std::uint64_t size_bytes) { return size_bytes < 1 << 20 ? 32 : 2; }
constexpr int kQuickly = 4, kOnce = 22;
constexpr auto kLimit = std::chrono::seconds(120);
constexpr std::uint64_t kPage = 4096;

/// A program in Python that writes and reads, and how it is reported.
struct Script {
  const char *program, *system, *transport, *mode;
  bool needs_server;
};
constexpr Script kPython{"nessie-bench-streams/streams_python.py", "nessie", "shm", "put-python", true},
    kSst{"nessie-bench-streams/adios2_sst.py", "adios2-sst", "tcp", "put-python", false};

/// Says aloud if not.
bool can_ask(const Script &script, const char *missed) {
  if (ask_python(script.program, "{}", kLimit)) return true;
  fmt::print(stderr, "nessie bench: {}\n", missed);
  return false;
}

std::vector<std::uint64_t> sizes_for(const Options &options) {
  return options.once ? std::vector<std::uint64_t>{8, 1 << 20} : std::vector<std::uint64_t>{8, 1 << 20, kLarge};
}

/// How many steps there are, of which the first tenth warms up.
int steps_of(const Options &options, std::uint64_t size_bytes) {
  const int full = size_bytes >= kLarge ? 220 : size_bytes >= 1 << 20 ? 1100 : 11'000;
  return options.once ? kOnce : options.quick ? full / kQuickly : full;
}

/// The median of the means of ten batches: steps come in bursts where some of them wait.
double typical_step_us(const std::vector<double> &ends_s) {
  const auto first = ends_s.size() / (kBatches + 1), each = first;
  std::vector<double> means;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = first - 1 + static_cast<std::size_t>(batch) * each;
    means.push_back((ends_s[begin + each] - ends_s[begin]) / static_cast<double>(each) * 1e6);
  }
  return summarise(std::move(means)).median;
}

struct Pair {
  std::uint64_t size_bytes;
  int steps;
  std::string at;
};

Status write_steps(const Pair &pair, Putting how) {
  auto writer = open_writer(pair.at, 0, 1, 1);
  if (!writer.ok()) return writer.error();
  StepArray array(pair.size_bytes);
  auto status = array.define(*writer);
  for (int step = 0; status.ok() && step < pair.steps; ++step)
    status = write_step(*writer, [&] { return array.put(*writer, how); });
  return status.ok() ? writer->close(soon()) : status;
}

/// Leaves how long a step takes, from the end of one to the end of the next.
Status read_steps(const Pair &pair, Lane &lane) {
  auto reader = open_reader(pair.at);
  if (!reader.ok()) return reader.error();
  StepArray array(pair.size_bytes);
  std::vector<double> ends_s;
  for (;;) {
    const auto begun = reader->begin_step(soon());
    if (!begun.ok()) return begun.error();
    if (*begun != StepState::kOk) break;
    if (auto status = array.get(*reader); !status.ok()) return status;
    if (auto status = reader->end_step(); !status.ok()) return status;
    ends_s.push_back(now_s());
  }
  if (ends_s.size() != static_cast<std::size_t>(pair.steps))
    return Error{Code::kPeerLost, fmt::format("of {} steps {} came", pair.steps, ends_s.size())};
  lane.us = typical_step_us(ends_s);
  return reader->close(soon());
}

class StreamsPair final : public Comparison {
 public:
  StreamsPair(const Options &options, Report &report)
      : Comparison(options, report, {"step_us", "us"}),
        sizes_(sizes_for(options)),
        has_python_(can_ask(kPython, "steps are not measured in Python: the package nessie.streams is not there")),
        has_sst_(can_ask(kSst, "adios2-sst is not measured: `pip install adios2`, or name its folder in PYTHONPATH")) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Result<double> through_server(const std::string &transport, std::uint64_t size, Putting how) const;
  Result<double> in_python(const Script &script, std::uint64_t size) const;
  Status over_tcp();
  Series over_tcp(const std::string &system, const std::string &mode) const {
    return {system, "tcp", mode, sizes_.back(), 1, "bandwidth_MBps", "MB/s"};
  }

  const std::vector<std::uint64_t> sizes_;
  const bool has_python_, has_sst_;
};

// --- measuring -------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<StreamsServer>> server_for(const std::string &transport, std::uint64_t size) {
  return StreamsServer::start(
      transport, {fmt::format("streams.memory={}", static_cast<std::uint64_t>(depth_of(size)) * std::max(size, kPage)),
                  "streams.keep=0"});
}

Result<double> StreamsPair::through_server(const std::string &transport, std::uint64_t size, Putting how) const {
  const auto server = server_for(transport, size);
  if (!server) return server.error();
  const Pair pair{size, steps_of(options_, size), (*server)->at()};
  const auto board = run_streams_crew(2, [&](Board &shared, int member) -> Status {
    return member == 0 ? write_steps(pair, how) : read_steps(pair, shared.lane(member));
  });
  if (!board) return board.error();
  return (*board)->lane(1).us;
}

/// SST needs no server.
Result<double> StreamsPair::in_python(const Script &script, std::uint64_t size) const {
  std::unique_ptr<StreamsServer> server;
  if (script.needs_server) {
    auto started = server_for("shm", size);
    if (!started) return started.error();
    server = *std::move(started);
  }
  const nlohmann::json question{{"at", server ? server->at() : ""},
                                {"size_bytes", size},
                                {"steps", steps_of(options_, size)},
                                {"depth", depth_of(size)}};
  const auto answer = ask_python(script.program, question.dump(), kLimit);
  if (!answer) return answer.error();
  const double us = std::atof(answer->output.c_str());
  if (us > 0) return us;
  return Error{Code::kBadMessage, fmt::format("{} has printed '{}'", script.program, answer->output)};
}

/// What is put goes to the server, and from there to the reader: twice through the loopback interface.
Status StreamsPair::over_tcp() {
  const auto us = through_server("tcp", sizes_.back(), Putting::kPut);
  if (!us) return us.error();
  add(over_tcp("nessie", "put"), megabytes_per_s(*us, sizes_.back()));
  const auto socket = socket_transfers(SocketKind::kTcpLoopback, {sizes_.back()});
  if (!socket) return socket.error();
  add(over_tcp("socket", "transfer"), megabytes_per_s(socket->begin()->second, sizes_.back()));
  return {};
}

Status StreamsPair::measure() {
  for (const auto size : sizes_) {
    for (const auto &[mode, how] : kPuttingModes) {
      const auto us = through_server(options_.transport, size, how);
      if (!us) return us.error();
      add(ours(mode, size), *us);
    }
    for (const auto *script : {&kPython, &kSst}) {
      if (!(script == &kPython ? has_python_ : has_sst_)) continue;
      const auto us = in_python(*script, size);
      if (!us) return us.error();
      add(series(script->system, script->transport, script->mode, size), *us);
    }
  }
  return over_tcp();
}

// --- ratios ----------------------------------------------------------------------------------------------------------

void StreamsPair::add_ratios() {
  for (const auto size : sizes_) {
    const auto sst = series(kSst.system, kSst.transport, kSst.mode, size);
    for (const auto &[mode, how] : kPuttingModes) compare(ours(mode, size), sst);
    compare(series(kPython.system, kPython.transport, kPython.mode, size), sst);
    for (const char *mode : {"span", "lent"}) compare(ours(mode, size), ours("put", size));
  }
  compare(over_tcp("nessie", "put"), over_tcp("socket", "transfer"));
}

}  // namespace

Status streams_pair(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  return StreamsPair(options, report).run(options.repetitions(5, 2), "steps of one writer and one reader");
}

}  // namespace bench
