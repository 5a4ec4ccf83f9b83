// SPDX-License-Identifier: BSD-3-Clause
// streams-logged: steps that are on a disk before end_step() returns, beside that disk by itself. streams-view: whether
// a reader that views a stream, and is stopped, slows its writer down.
#include "comparison.hpp"
#include "disk.hpp"
#include "staging_team.hpp"
#include "streams_team.hpp"
#include "timing.hpp"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

namespace bench {
namespace {

using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::streams::Reading;
using nessie::streams::Writer;

/// Writes so many steps, after one that does not count; leaves how long one takes.
Status write_timed(Writer &writer, StepArray &array, int steps, Lane &lane) {
  auto status = array.define(writer);
  double begun_s = 0;
  for (int step = -1; status.ok() && step < steps; ++step) {
    if (step == 0) begun_s = now_s();
    status = write_step(writer, [&] { return array.put(writer, Putting::kPut); });
  }
  lane.us = (now_s() - begun_s) / steps * 1e6;
  return status;
}

class StreamsLogged final : public Comparison {
 public:
  StreamsLogged(const Options &options, Report &report)
      : Comparison(options, report, {"bandwidth_MBps", "MB/s"}),
        size_(options.once ? 1 << 20 : 16 << 20),
        steps_(options.once    ? 4
               : options.quick ? 16
                               : 64) {}

 private:
  Status measure() override;
  void add_ratios() override { compare(ours("logged", size_), disk()); }
  Series disk() const { return series("disk", "file", "logged", size_); }

  const std::uint64_t size_;
  const int steps_;
  const Scratch folder_{false};
};

Status StreamsLogged::measure() {
  folder_.clear();
  const auto bytes = size_ * static_cast<std::uint64_t>(steps_);
  {
    const auto server = StreamsServer::start(options_.transport, {"streams.log=" + folder_.path().string()});
    if (!server) return server.error();
    const auto board = run_streams_crew(1, [&](Board &shared, int member) -> Status {
      nessie::streams::WriterOptions logged;
      logged.at = (*server)->at();
      logged.durability = nessie::streams::Durability::kLogged;
      auto writer = Writer::open("logged", logged, soon());
      if (!writer.ok()) return writer.error();
      StepArray array(size_);
      auto status = write_timed(*writer, array, steps_, shared.lane(member));
      return status.ok() ? writer->close(soon()) : status;
    });
    if (!board) return board.error();
    add(ours("logged", size_), megabytes_per_s((*board)->lane(0).us, size_));
  }
  folder_.clear();
  const auto took_s = write_to_disk(folder_.path().string(), bytes);
  if (!took_s) return took_s.error();
  add(disk(), static_cast<double>(bytes) / *took_s / 1e6);
  return {};
}

// --- views ------------------------------------------------------------------------------------------------------------

class StreamsView final : public Comparison {
 public:
  StreamsView(const Options &options, Report &report)
      : Comparison(options, report, {"step_us", "us"}),
        steps_(options.once    ? 10
               : options.quick ? 1000
                               : 4000) {}

 private:
  Status measure() override;
  void add_ratios() override { compare(ours("stopped-view", kSize), ours("no-view", kSize)); }
  Result<double> step_us(bool has_view) const;

  static constexpr std::uint64_t kSize = 1 << 20;
  const int steps_;
};

/// Reads a step, and is stopped until the writer is done with its own.
Status view_and_stop(const std::string &at, Board &board, Lane &lane) {
  auto reader = open_reader(at, 0, 1, Reading::kView);
  if (!reader.ok()) return reader.error();
  StepArray array(1 << 20);
  if (auto begun = reader->begin_step(soon()); !begun.ok()) return begun.error();
  if (auto status = array.get(*reader); !status.ok()) return status;
  if (auto status = reader->end_step(); !status.ok()) return status;
  lane.us = ::getpid();
  board.arrive();
  ::raise(SIGSTOP);
  return reader->close(soon());
}

bool is_stopped(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string number, name, state;
  return stat >> number >> name >> state && state == "T";
}

Result<double> StreamsView::step_us(bool has_view) const {
  const auto server = StreamsServer::start(options_.transport, {"streams.keep=0"});
  if (!server) return server.error();
  const auto board = run_streams_crew(has_view ? 2 : 1, [&](Board &shared, int member) -> Status {
    if (member == 1) return view_and_stop((*server)->at(), shared, shared.lane(member));
    auto writer = open_writer((*server)->at());
    if (!writer.ok()) return writer.error();
    StepArray array(kSize);
    if (auto status = array.define(*writer); !status.ok()) return status;
    if (auto status = write_step(*writer, [&] { return array.put(*writer, Putting::kPut); }); !status.ok())
      return status;
    shared.arrive();
    while (has_view && !shared.stopped() && !is_stopped(static_cast<pid_t>(shared.lane(1).us)))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto status = write_timed(*writer, array, steps_, shared.lane(0));
    if (has_view) ::kill(static_cast<pid_t>(shared.lane(1).us), SIGCONT);
    return status.ok() ? writer->close(soon()) : status;
  });
  if (!board) return board.error();
  return (*board)->lane(0).us;
}

Status StreamsView::measure() {
  for (const bool has_view : {false, true}) {
    const auto us = step_us(has_view);
    if (!us) return us.error();
    add(ours(has_view ? "stopped-view" : "no-view", kSize), *us);
  }
  return {};
}

}  // namespace

Status streams_logged(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  return StreamsLogged(options, report).run(options.repetitions(7, 3), "steps in a log");
}

Status streams_view(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  return StreamsView(options, report).run(options.repetitions(15, 5), "a writer beside a view");
}

}  // namespace bench
