// SPDX-License-Identifier: BSD-3-Clause
// A writer or a reader whose steps can be checked, for tests that kill it, its like, or the servers. What it has done
// it says in a line each: "ended 3" (a writer's step is with the servers), "step 3" (a reader has seen all of it, and
// it was right), "closed", "end". What it was told of a loss: "lost: …". It goes on after that as a user's program
// would.
//
//     streams_peer write STEPS --name NAME [--rank R --size N --logged --append --await N --pause MS --elements N
//     --until FILE --deadline MS] streams_peer read --name NAME [--rank R --size N --as SUBSCRIPTION --view --pause MS
//     --last N --deadline MS]
#include <nessie/streams.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace nessie::streams;
using nessie::Code;
using nessie::Deadline;
using std::chrono::milliseconds;

struct Options {
  std::string name, subscription, until;
  std::int64_t steps = 0, last = -1, elements = 4096;
  int rank = 0, size = 1, await_readers = 0, pause_ms = 0, deadline_ms = 60'000;
  bool logged = false, append = false, view = false;
};

void say(const std::string &line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int fail(const nessie::Error &error) {
  say("error: " + error.to_string());
  return 1;
}

double value_at(std::uint64_t step, std::int64_t at) {
  return static_cast<double>(step) * 1e9 + static_cast<double>(at);
}

/// The part of so many elements that a rank has.
Box part_of(std::int64_t elements, int rank, int size) {
  const auto first = elements * rank / size, end = elements * (rank + 1) / size;
  return {{first}, {end - first}};
}

Deadline patience(const Options &options) { return Deadline::in(milliseconds(options.deadline_ms)); }

void pause(const Options &options) { std::this_thread::sleep_for(milliseconds(options.pause_ms)); }

int write_steps(const Options &options) {
  WriterOptions with;
  with.rank = options.rank;
  with.size = options.size;
  with.durability = options.logged ? Durability::kLogged : Durability::kMemory;
  with.append = options.append;
  with.await_readers = options.await_readers;
  auto writer = Writer::open(options.name, with, patience(options));
  if (!writer.ok()) return fail(writer.error());
  const auto box = part_of(options.elements, options.rank, options.size);
  std::vector<double> values(static_cast<std::size_t>(box.count[0]));
  const Variable array{"x", Type::kDouble, {options.elements}, {}, false}, grid{"grid", Type::kInt64, {2}, {}, true};
  for (const auto &variable : {array, grid})
    if (auto status = writer->define(variable); !status.ok()) return fail(status.error());
  say(fmt::format("begins with {}", writer->step()));
  const auto is_over = [&] { return !options.until.empty() && ::access(options.until.c_str(), F_OK) == 0; };
  while (writer->step() < static_cast<std::uint64_t>(options.steps) && !is_over()) {
    const auto step = writer->step();
    const auto begun = writer->begin_step(patience(options));
    if (!begun.ok()) return fail(begun.error());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = value_at(step, box.start[0] + static_cast<std::int64_t>(i));
    const std::int64_t first[2] = {42, static_cast<std::int64_t>(step)};
    auto status = writer->put("x", box, values.data());
    if (status.ok() && options.rank == 0 && (step == 0 || (step == 3 && !options.append)))
      status = writer->put("grid", {{0}, {2}}, first);
    if (status.ok()) status = writer->end_step(patience(options));
    if (!status.ok()) return fail(status.error());
    say(fmt::format("ended {}", step));
    pause(options);
  }
  if (auto status = writer->close(patience(options)); !status.ok()) return fail(status.error());
  say("closed");
  return 0;
}

nessie::Error wrong(std::string what) { return {Code::kBadMessage, std::move(what)}; }

/// kBadMessage: it is not as it was written.
nessie::Status check_step(Reader &reader, const Options &options) {
  const auto *array = reader.find("x");
  if (array == nullptr) return wrong("there is no x");
  const auto box = part_of(array->shape[0], options.rank, options.size);
  std::vector<double> values(static_cast<std::size_t>(box.count[0]));
  if (auto got = reader.get("x", box, values.data(), values.size() * sizeof(double), patience(options)); !got.ok())
    return got;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != value_at(reader.step(), box.start[0] + static_cast<std::int64_t>(i)))
      return wrong(fmt::format("x[{}] is {}", box.start[0] + static_cast<std::int64_t>(i), values[i]));
  std::int64_t grid[2] = {0, 0};
  if (auto got = reader.get("grid", {{0}, {2}}, grid, sizeof grid, patience(options)); !got.ok()) return got;
  return grid[0] == 42 ? nessie::Status() : wrong("grid differs");
}

int read_steps(const Options &options) {
  ReaderOptions with;
  with.rank = options.rank;
  with.size = options.size;
  with.subscription = options.subscription;
  with.reading = options.view ? Reading::kView : Reading::kEvery;
  if (options.subscription.empty()) with.group = 77;
  auto reader = Reader::open(options.name, with, patience(options));
  if (!reader.ok()) return fail(reader.error());
  say("reads");
  for (;;) {
    const auto begun = reader->begin_step(patience(options));
    if (begun.code() == Code::kPeerLost || begun.code() == Code::kNotFound) {
      say("lost: " + begun.error().message);
      std::this_thread::sleep_for(milliseconds(20));
      continue;
    }
    if (!begun.ok()) return fail(begun.error());
    if (*begun == StepState::kEnd) break;
    if (*begun == StepState::kNotYet) return fail({Code::kTimedOut, "no step came"});
    const auto checked = check_step(*reader, options);
    const bool is_gone =
        checked.code() == Code::kNotFound && checked.error().message.find("is not there any more") != std::string::npos;
    if (is_gone) {  // a view, or who was silent, holds nothing
      say(fmt::format("lost: step {} is gone, silent or a view", reader->step()));
    } else if (checked.code() == Code::kBadMessage) {
      say(fmt::format("wrong: step {}: {}", reader->step(), checked.error().message));
      return 1;
    } else if (!checked.ok()) {
      return fail(checked.error());
    } else {
      say(fmt::format("step {} missed {}", reader->step(), reader->missed()));
    }
    const bool is_last = static_cast<std::int64_t>(reader->step()) == options.last;
    if (auto status = reader->end_step(); !status.ok()) return fail(status.error());
    if (is_last) break;
    pause(options);
  }
  say("end");
  if (auto status = reader->close(patience(options)); !status.ok()) return fail(status.error());
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app("Writes, or reads, steps that can be checked", "streams_peer");
  Options options;
  auto *write = app.add_subcommand("write"), *read = app.add_subcommand("read");
  app.require_subcommand(1);
  write->add_option("steps", options.steps);
  write->add_flag("--logged", options.logged);
  write->add_flag("--append", options.append);
  write->add_option("--await", options.await_readers);
  write->add_option("--until", options.until);
  write->add_option("--elements", options.elements);
  read->add_option("--as", options.subscription);
  read->add_flag("--view", options.view);
  read->add_option("--last", options.last);
  for (auto *each : {write, read}) {
    each->add_option("--name", options.name)->required();
    each->add_option("--rank", options.rank);
    each->add_option("--size", options.size);
    each->add_option("--pause", options.pause_ms);
    each->add_option("--deadline", options.deadline_ms);
  }
  CLI11_PARSE(app, argc, argv);
  return write->parsed() ? write_steps(options) : read_steps(options);
}
