// SPDX-License-Identifier: BSD-3-Clause
// streams-dart: what DART's paper measures. A simulation of many clients whose data leave every few seconds: which
// share of its time does it spend in sending? Two clients that send as fast as they can: how near are they to what
// moves their data? And what a server's memory is when all clients are ahead of it.
#include "comparison.hpp"
#include "one_sided.hpp"
#include "staging_team.hpp"
#include "streams_team.hpp"
#include "timing.hpp"

#include <services/streams/sinks/receive.hpp>

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

namespace bench {
namespace {

using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::streams::Writer;

/// What the clients of a simulation do.
struct Simulation {
  int clients;
  std::uint64_t size_bytes;
  int steps;
  std::chrono::milliseconds period;
};
Simulation simulation_for(const Options &options) {
  if (options.once) return {4, 64 << 10, 3, std::chrono::milliseconds(50)};
  return {128, 8'900'000, options.quick ? 3 : 8, std::chrono::milliseconds(4500)};
}
constexpr int kOverload = 64;  ///< clients
constexpr std::uint64_t kMegabyte = 1'000'000;

/// Who takes the steps from the server.
enum class Sink { kNone, kFile, kSocket };

/// A process that takes steps over TCP, as another program would, and drops them.
class StepReceiver {
 public:
  StepReceiver() : program_([](int, int to_parent) { return receive(to_parent); }) {
    if (!program_.read_value(port_)) port_ = 0;
  }
  ~StepReceiver() { ::kill(program_.pid(), SIGKILL); }
  int port() const { return port_; }

 private:
  struct Dropper final : nessie::streams::sinks::Keeper {
    Status keep(const nessie::streams::sinks::Opening &, std::uint64_t, std::span<const std::byte>) override {
      ++steps;
      return {};
    }
    std::uint64_t kept() const override { return steps; }
    std::uint64_t steps = 0;
  };
  static int receive(int to_parent) {
    auto receiver = nessie::streams::sinks::Receiver::open({});
    if (!receiver.ok()) return 1;
    const auto address = receiver->address();
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    if (::write(to_parent, &port, sizeof port) != sizeof port) return 1;
    Dropper dropper;
    return receiver->run(dropper).ok() ? 0 : 1;
  }
  Partner program_;
  int port_ = 0;
};

/// A writer's time, parted.
class Shares {
 public:
  template <class Call> Status in_call(const Call &call) {
    const double begun_s = now_s();
    const Status status = call();
    in_calls_s_ += now_s() - begun_s;
    return status;
  }
  void start_anew() { *this = {}; }
  double percent() const { return 100 * in_calls_s_ / (now_s() - begun_s_); }

 private:
  double begun_s_ = now_s(), in_calls_s_ = 0;
};

/// Puts a step of one rank. What is computed into a span is not the call's.
class Sender {
 public:
  Sender(std::string at, int rank, int size, std::uint64_t size_bytes, Putting how)
      : at_(std::move(at)), rank_(rank), size_(size), how_(how), array_(size_bytes, rank, size) {}

  Status open() {
    auto opened = open_writer(at_, rank_, size_);
    if (!opened.ok()) return opened.error();
    writer_.emplace(*std::move(opened));
    return array_.define(*writer_);
  }
  /// `compute`: what the program does before its data are whole.
  Status send(Shares &shares, const std::function<void()> &compute) {
    auto status = shares.in_call([&] { return begin(); });
    if (!status.ok()) return status;
    if (how_ != Putting::kSpan) {
      compute();
      status = shares.in_call([&] { return array_.put(*writer_, how_); });
    } else {
      void *memory = nullptr;
      status = shares.in_call([&] { return array_.span(*writer_, memory); });
      if (status.ok()) array_.fill(*writer_, memory);
      compute();
    }
    return status.ok() ? shares.in_call([&] { return writer_->end_step(soon()); }) : status;
  }
  Status close() { return writer_->close(soon()); }

 private:
  Status begin() {
    const auto begun = writer_->begin_step(soon());
    return begun.ok() ? Status() : Status(begun.error());
  }
  const std::string at_;
  const int rank_, size_;
  const Putting how_;
  StepArray array_;
  std::optional<Writer> writer_;
};

double mean_us(Board &board, int members) {
  double sum = 0;
  for (int member = 0; member < members; ++member) sum += board.lane(member).us;
  return sum / members;
}

class StreamsDart final : public Comparison {
 public:
  StreamsDart(const Options &options, Report &report)
      : Comparison(options, report, {"bandwidth_MBps", "MB/s"}),
        simulation_(simulation_for(options)),
        sizes_(options.once ? std::vector<std::uint64_t>{kMegabyte}
                            : std::vector<std::uint64_t>{kMegabyte, 10 * kMegabyte, 100 * kMegabyte}) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Metric metric_of(const std::string &mode) const override {
    if (mode.ends_with("-overload")) return {"memory_bytes", "B"};
    if (mode.ends_with("-asleep") || mode.ends_with("-computing")) return {"in_calls_percent", "%"};
    return {"bandwidth_MBps", "MB/s"};
  }
  Status simulate(const PuttingMode &mode, Sink sink);
  Status send_at_once(const PuttingMode &mode, std::uint64_t size);
  Result<double> two_senders(const PuttingMode &mode, std::uint64_t size, double compute_s, double &percent) const;
  Status overload();

  const Simulation simulation_;
  const std::vector<std::uint64_t> sizes_;
};

// --- many clients -----------------------------------------------------------------------------------------------------

/// They sleep between their sends, as here there are not cores enough for all to compute.
Status StreamsDart::simulate(const PuttingMode &mode, Sink sink) {
  const auto &s = simulation_;
  const auto memory = 2 * s.clients * (s.size_bytes + (1 << 20));
  std::vector<std::string> settings{fmt::format("streams.memory={}", memory), "streams.keep=0"};
  const Scratch folder(false);
  std::optional<StepReceiver> receiver;
  if (sink == Sink::kFile) settings.push_back(fmt::format("streams.sinks=record:*={}/", folder.path().string()));
  if (sink == Sink::kSocket) {
    receiver.emplace();
    if (receiver->port() == 0) return Error{nessie::Code::kIo, "nobody takes steps over TCP"};
    settings.push_back(fmt::format("streams.sinks=forward:*=tcp://127.0.0.1:{}", receiver->port()));
  }
  const auto server = StreamsServer::start(options_.transport, settings);
  if (!server) return server.error();
  const auto board = run_streams_crew(s.clients, [&](Board &shared, int member) -> Status {
    Sender sender((*server)->at(), member, s.clients, s.size_bytes, mode.how);
    if (auto status = sender.open(); !status.ok()) return status;
    Shares shares;
    auto next = std::chrono::steady_clock::time_point();
    for (int step = -2; step < s.steps; ++step) {  // in the first two memory is mapped
      if (step < 1 && !shared.meet(s.clients, step + 3)) return Error{nessie::Code::kTimedOut, "not all clients came"};
      if (step == -2) next = std::chrono::steady_clock::now();
      if (step == 0) shares.start_anew();
      const auto sleep = [&] { std::this_thread::sleep_until(next); };
      if (auto status = sender.send(shares, sleep); !status.ok()) return status;
      next += s.period;
    }
    std::this_thread::sleep_until(next);
    shared.lane(member).us = shares.percent();
    return sender.close();
  });
  if (!board) return board.error();
  const char *const to = sink == Sink::kNone ? "" : sink == Sink::kFile ? "-file" : "-socket";
  add(ours(fmt::format("{}{}-asleep", mode.mode, to), s.size_bytes, s.clients), mean_us(**board, s.clients));
  return {};
}

// --- two clients ------------------------------------------------------------------------------------------------------

/// How long a step takes them; nobody reads, so the server drops it. Those that compute are asleep, as above.
/// `percent`: of their time, in calls.
Result<double> StreamsDart::two_senders(const PuttingMode &mode, std::uint64_t size, double compute_s,
                                        double &percent) const {
  constexpr int kSenders = 2, kWarmUp = 3;
  const int steps = options_.once ? 3 : std::clamp(static_cast<int>(2'000 * kMegabyte / size), 12, 400);
  const auto server = StreamsServer::start(options_.transport, {"streams.memory=1G", "streams.keep=0"});
  if (!server) return server.error();
  const auto board = run_streams_crew(kSenders, [&](Board &shared, int member) -> Status {
    Sender sender((*server)->at(), member, kSenders, size, mode.how);
    if (auto status = sender.open(); !status.ok()) return status;
    Shares shares;
    const auto compute = [&] { std::this_thread::sleep_for(std::chrono::duration<double>(compute_s)); };
    auto &lane = shared.lane(member);
    for (int step = -kWarmUp; step < steps; ++step) {
      if (step == 0 && !shared.meet(kSenders, 1)) return Error{nessie::Code::kTimedOut, "not all clients came"};
      if (step == 0) shares.start_anew(), lane.tally.began_s = now_s();
      if (auto status = sender.send(shares, compute); !status.ok()) return status;
    }
    lane.tally.ended_s = now_s();
    lane.tally.calls = steps;
    lane.us = shares.percent();
    return sender.close();
  });
  if (!board) return board.error();
  percent = mean_us(**board, kSenders);
  return 1e6 / calls_per_s(**board, kSenders);
}

Status StreamsDart::send_at_once(const PuttingMode &mode, std::uint64_t size) {
  double percent = 0;
  const auto us = two_senders(mode, size, 0, percent);
  if (!us) return us.error();
  add(ours(mode.mode, size, 2), megabytes_per_s(*us, size));
  const auto again = two_senders(mode, size, *us / 1e6, percent);
  if (!again) return again.error();
  add(ours(fmt::format("{}-computing", mode.mode), size, 2), percent);
  return {};
}

// --- more than a server's memory --------------------------------------------------------------------------------------

/// Opens a group, which holds all steps and reads none; leaves the most memory that the server has had until the
/// clients are done.
Status hold_all(const StreamsServer &server, int clients, Board &board, Lane &lane) {
  auto reader = open_reader(server.at());
  if (!reader.ok()) return reader.error();
  for (board.arrive(); !board.stopped() && !board.all_here(2 * clients + 1, 1);) {
    lane.us = std::max(lane.us, server.resident_bytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return reader->close(soon());
}

Status StreamsDart::overload() {
  const int clients = options_.once ? 4 : kOverload;
  const std::uint64_t memory = options_.once ? 8 << 20 : 256 << 20, each = options_.once ? 256 << 10 : 1 << 20;
  const int steps = static_cast<int>(4 * memory / (each * static_cast<std::uint64_t>(clients)));
  const Scratch disk(false);
  const auto server = StreamsServer::start(
      options_.transport, {fmt::format("streams.memory={}", memory), "streams.log=" + disk.path().string()});
  if (!server) return server.error();
  const auto board = run_streams_crew(clients + 1, [&](Board &shared, int member) -> Status {
    if (member == clients) return hold_all(**server, clients, shared, shared.lane(member));
    Sender sender((*server)->at(), member, clients, each, Putting::kPut);
    if (auto status = sender.open(); !status.ok()) return status;
    if (!shared.meet(clients + 1, 1)) return Error{nessie::Code::kTimedOut, "not all clients came"};
    Shares shares;
    for (int step = 0; step < steps; ++step)
      if (auto status = sender.send(shares, [] {}); !status.ok()) return status;
    shared.arrive();
    return sender.close();
  });
  if (!board) return board.error();
  add(ours("put-overload", memory, clients), (*board)->lane(clients).us);
  return {};
}

Status StreamsDart::measure() {
  for (const auto &mode : {kPuttingModes[0], kPuttingModes[1]})
    for (const auto sink : {Sink::kNone, Sink::kFile, Sink::kSocket})
      if (auto status = simulate(mode, sink); !status.ok()) return status;
  if (auto status = add(run_one_sided(options_, sizes_)); !status.ok()) return status;
  for (const auto size : sizes_)
    for (const auto &mode : kPuttingModes)
      if (auto status = send_at_once(mode, size); !status.ok()) return status;
  return overload();
}

void StreamsDart::add_ratios() {
  for (const auto size : sizes_) {
    compare(ours("lent", size, 2), ours("get-application", size));
    for (const char *mode : {"put", "span"}) compare(ours(mode, size, 2), ours("get-mapped", size));
  }
}

}  // namespace

Status streams_dart(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  return StreamsDart(options, report).run(options.repetitions(3, 1), "a simulation that sends");
}

}  // namespace bench
