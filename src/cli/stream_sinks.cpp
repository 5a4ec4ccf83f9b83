// SPDX-License-Identifier: BSD-3-Clause
// nessie stream record, forward and receive: steps go where they are safe, and are acknowledged then.
#include "speech.hpp"
#include "stream.hpp"
#include "summary.hpp"

#include <base/config.hpp>
#include <base/printable.hpp>
#include <services/streams/sinks/pump.hpp>
#include <services/streams/sinks/receive.hpp>
#include <services/streams/sinks/target.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>

namespace nessie::cli {

namespace {

using nlohmann::ordered_json;
using streams::sinks::Progress;
using streams::sinks::PumpOptions;
using streams::sinks::Sink;
using streams::sinks::Stop;
using streams::sinks::Target;

/// How far it has come, on a terminal; and at its end, for whoever asked.
class Teller {
 public:
  Teller(const StreamOptions &options, std::string where)
      : options_(options), where_(std::move(where)), line_(options.json) {}
  void show(const Progress &progress) {
    line_.show(fmt::format("{} of '{}' in {}, {}", counted(progress.steps, "step"), printable(options_.name), where_,
                           format_size(progress.bytes)));
  }
  void say(std::string_view text) {
    line_.hide();
    cli::say(fmt::format("{}: {}", printable(options_.name), text));
  }
  void end(const Progress &progress) {
    line_.hide();
    if (options_.json)
      fmt::print("{}\n", ordered_json{{"stream", to_utf8(options_.name)},
                                      {"to", to_utf8(where_)},
                                      {"steps", progress.steps},
                                      {"bytes", progress.bytes},
                                      {"skipped", progress.skipped},
                                      {"missing", progress.missing},
                                      {"gaps", progress.gaps},
                                      {"last", progress.steps > 0 ? ordered_json(progress.last) : ordered_json()},
                                      {"ended", progress.has_ended},
                                      {"why", to_utf8(progress.why_ended)}}
                             .dump());
    else
      cli::say(fmt::format("{} of '{}' in {}, {}{}{}{}", counted(progress.steps, "step"), printable(options_.name),
                           where_, format_size(progress.bytes),
                           progress.skipped > 0 ? fmt::format("; {} were there already", progress.skipped) : "",
                           progress.gaps > 0 ? fmt::format("; {} arrays of them are gone", progress.gaps) : "",
                           end_of(progress)));
  }

 private:
  static std::string end_of(const Progress &progress) {
    if (!progress.has_ended) return {};
    return "; the stream has ended" + (progress.why_ended.empty() ? "" : ": " + printable(progress.why_ended));
  }

  const StreamOptions &options_;
  std::string where_;
  ProgressLine line_;
};

int hand_on(const StreamOptions &options, const Target &target, Ending &ending) {
  const Stop stop = [&] { return ending.is_asked(); };
  Teller teller(options, target.where());
  streams::ReaderOptions wanted;
  wanted.at = options.at;
  wanted.subscription = options.subscription;
  auto reader = streams::sinks::open_reader(options.name, wanted, timeout_of(options), stop);
  if (!reader.ok()) return reader.code() == Code::kCancelled ? 0 : fail_stream(reader.error());
  const auto say = [&](std::string_view text) { teller.say(text); };
  auto sink = target.open({options.name, reader->identity()}, {timeout_of(options), stop, say});
  if (!sink.ok()) return sink.code() == Code::kCancelled ? 0 : fail_stream(sink.error());
  PumpOptions pumping{options.variables,
                      timeout_of(options),
                      options.steps,
                      stop,
                      [&](const Progress &progress) { teller.show(progress); },
                      say};
  Progress progress;
  const auto done = streams::sinks::pump(*reader, **sink, pumping, progress);
  const auto closed = reader->close(Deadline::in(timeout_of(options)));
  teller.end(progress);
  if (!done.ok()) return fail_stream(done.error());
  if (!closed.ok()) return fail_stream(closed.error());
  return progress.missing > 0 || progress.gaps > 0 ? kExitDataLost : 0;
}

int hand_on(const StreamOptions &options, const Result<Target> &target) {
  if (!target.ok()) return (void)fail_stream(target.error()), 2;
  auto ending = Ending::watch();
  if (!ending.ok()) return fail_stream(ending.error());
  return hand_on(options, *target, *ending);
}

}  // namespace

int record_stream(const StreamOptions &options) { return hand_on(options, Target::file(options.out, options.append)); }

int forward_stream(const StreamOptions &options) {
  const auto rate = options.rate.empty() ? Result<std::uint64_t>(0) : parse_size(options.rate);
  if (!rate.ok()) return (void)fail_stream(rate.error()), 2;
  return hand_on(options, Target::place(options.to, options.as, options.append, *rate));
}

int receive_stream(const StreamOptions &options) {
  using namespace streams::sinks;
  ReceiverOptions wanted;
  const auto where = HostPort::parse(options.listen);
  const auto most = parse_size(options.most);
  if (!where.ok() || !most.ok()) return (void)fail_stream(where.ok() ? most.error() : where.error()), 2;
  wanted.listen = *where;
  wanted.most_image_bytes = *most;
  wanted.patience = timeout_of(options);
  auto ending = Ending::watch();
  if (!ending.ok()) return fail_stream(ending.error());
  wanted.stop = [&] { return ending->is_asked(); };
  if (!options.folder.empty() && !std::filesystem::is_directory(options.folder))
    return fail_stream({Code::kNotFound, fmt::format("there is no folder {}", printable(options.folder))});
  std::unique_ptr<Keeper> keeper;
  if (options.folder.empty())
    keeper = std::make_unique<FileKeeper>(options.out, options.append);
  else
    keeper = std::make_unique<FolderKeeper>(options.folder);
  auto receiver = Receiver::open(std::move(wanted));
  if (!receiver.ok()) return fail_stream(receiver.error());
  fmt::print("tcp://{}\n", receiver->address());
  std::fflush(stdout);
  const auto done = receiver->run(*keeper);
  const bool was_stopped = done.code() == Code::kCancelled;
  if (options.json)
    fmt::print("{}\n", ordered_json{{"steps", keeper->kept()}, {"ended", done.ok()}}.dump());
  else
    say(fmt::format("{} received{}", counted(keeper->kept(), "step"), done.ok() ? "; the stream has ended" : ""));
  return done.ok() || was_stopped ? 0 : fail_stream(done.error());
}

}  // namespace nessie::cli
