// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

#include "installation.hpp"
#include "speech.hpp"
#include "stream_print.hpp"

#include <base/nearest.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nessie::cli {

namespace {

Deadline within(const StreamOptions &options) { return Deadline::in(timeout_of(options)); }

int list_streams(const StreamOptions &options) {
  const auto all = streams::list(options.at, within(options));
  if (!all.ok()) return fail_stream(all.error());
  const auto is_elsewhere = [&](const auto &each) { return each.at != all->front().at; };
  const bool says_where = std::ranges::any_of(*all, is_elsewhere);
  for (const auto &each : *all)
    if (options.json)
      fmt::print("{}\n", to_json(each).dump());
    else
      fmt::print("{}{}\n", describe_line(each), says_where ? ", at " + printable(each.at) : "");
  return 0;
}

int show_stream(const StreamOptions &options) {
  const auto all = streams::list(options.at, within(options));
  if (!all.ok()) return fail_stream(all.error());
  bool is_there = false;
  for (const auto &each : *all) {
    if (each.name != options.name) continue;
    is_there = true;
    fmt::print("{}", options.json ? to_json(each).dump() + "\n" : describe(each));
  }
  if (is_there) return 0;
  std::vector<std::string> names;
  for (const auto &each : *all) names.push_back(each.name);
  const auto nearest = nearest_of(options.name, names);
  return fail_stream(
      {Code::kNotFound, fmt::format("there is no stream '{}'{}", printable(options.name),
                                    nearest.empty() ? "; `nessie stream list` shows what there is"
                                                    : fmt::format("; did you mean '{}'?", printable(nearest)))});
}

int forget_subscription(const StreamOptions &options) {
  streams::ReaderOptions reader;
  reader.at = options.at;
  reader.subscription = options.subscription;
  auto opened = streams::Reader::open(options.name, reader, within(options));
  if (!opened.ok()) return fail_stream(opened.error());
  const auto done = opened->unsubscribe(within(options));
  return done.ok() ? 0 : fail_stream(done.error());
}

/// Returns only if it cannot be started.
int serve_streams(const StreamOptions &options) {
  const auto program = find_streams_program();
  if (!program.ok()) return fail_stream(program.error());
  std::vector<std::string> words = {*program};
  const auto set = [&](const char *setting, const std::string &value) {
    if (!value.empty()) words.insert(words.end(), {"--set", fmt::format("streams.{}={}", setting, value)});
  };
  set("memory", options.memory), set("log", options.log), set("name", options.name);
  if (!options.announce.empty()) words.insert(words.end(), {"--announce", options.announce});
  std::vector<char *> argv;
  for (auto &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return fail_stream({Code::kIo, fmt::format("cannot run {}: {}", *program, std::strerror(errno))});
}

}  // namespace

int fail_stream(const Error &error) { return say_failure("stream", error.message); }

Result<Ending> Ending::watch() {
  auto signals = Signals::open();
  if (!signals.ok()) return signals.error();
  return Ending(*std::move(signals));
}

bool Ending::is_asked() {
  while (const auto signal = signals_.wait(Deadline::now())) {
    if (signal->was_ignored) continue;
    if (asks_to_end(signal->number)) is_asked_ = true;
    if (stops_by_default(signal->number)) signals_.stop(signal->number);
  }
  return is_asked_;
}

int stream(const StreamOptions &options) {
  using Action = StreamOptions::Action;
  switch (options.action) {
    case Action::kList: return list_streams(options);
    case Action::kInfo: return show_stream(options);
    case Action::kTail: return tail_stream(options);
    case Action::kRecord: return record_stream(options);
    case Action::kForward: return forward_stream(options);
    case Action::kReceive: return receive_stream(options);
    case Action::kForget: return forget_subscription(options);
    case Action::kServe: return serve_streams(options);
  }
  return 2;
}

}  // namespace nessie::cli
