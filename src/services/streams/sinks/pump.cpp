// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/pump.hpp"

#include "services/streams/sinks/rate.hpp"
#include "services/streams/sinks/slabs.hpp"

#include <fmt/core.h>

namespace nessie::streams::sinks {

namespace {

constexpr std::chrono::milliseconds kTurn{500};  ///< how long a wait goes on before it is asked whether to stop
constexpr std::chrono::milliseconds kToOpenReader{5000};

/// What may be otherwise soon.
bool passes(Code code) {
  return code == Code::kTimedOut || code == Code::kPeerLost || code == Code::kNotFound || code == Code::kExists ||
         code == Code::kUnavailable || code == Code::kBusy;
}

/// Since when there has been trouble, and whether that is too long.
class Trouble {
 public:
  explicit Trouble(std::chrono::milliseconds patience) : patience_(patience) {}
  void is_over() { until_ = Deadline::never(); }
  /// Whether it has just begun.
  bool begins() {
    if (!until_.is_never()) return false;
    until_ = Deadline::in(patience_);
    return true;
  }
  bool lasts() const { return until_.passed(); }

 private:
  std::chrono::milliseconds patience_;
  Deadline until_ = Deadline::never();
};

Status hand_on(Reader &reader, Sink &sink, const PumpOptions &options, Progress &progress) {
  const auto number = reader.step(), wanted = sink.wanted();
  if (number < wanted) {
    ++progress.skipped;
    return reader.end_step();
  }
  if (wanted > 0 && number > wanted) {
    progress.missing += number - wanted;
    options.say(fmt::format("steps {} to {} are gone: they are not handed on", wanted, number - 1));
  }
  auto step = StreamStep::open(reader, options.variables, wanted, options.patience);
  if (!step.ok()) return step.error();
  if (auto taken = sink.take(*step); !taken.ok()) return taken;
  progress.gaps = sink.missing();
  progress.bytes += step->bytes();
  progress.last = number;
  ++progress.steps;
  options.on_step(progress);
  return reader.end_step();
}

}  // namespace

Result<StreamStep> StreamStep::open(Reader &reader, const std::vector<std::string> &wanted, std::uint64_t since,
                                    std::chrono::milliseconds patience) {
  StreamStep step(reader, wanted, since, patience);
  if (wanted.empty()) step.variables_ = reader.variables();
  for (const auto &name : wanted) {
    const auto *variable = reader.find(name);
    if (variable == nullptr && reader.source() != nullptr) continue;
    if (variable == nullptr)
      return Error{Code::kNotFound, fmt::format("step {} has no variable '{}'", reader.step(), name)};
    step.variables_.push_back(*variable);
  }
  return step;
}

Status StreamStep::get(const Variable &variable, const Box &box, std::span<std::byte> destination) {
  auto got = reader_->get(variable.name, box, destination.data(), destination.size(), Deadline::in(patience_));
  if (got.ok()) bytes_ += elements_of(box) * size_of(variable.type);
  if (got.code() != Code::kNotFound) return got;
  if (reader_->source() != nullptr) return got;
  return Error{Code::kNotFound,
               fmt::format("{}. Elements that nobody puts need a fill value; or leave the variable out (--variables)",
                           got.error().message)};
}

Result<Reader> open_reader(std::string_view name, const ReaderOptions &options, std::chrono::milliseconds patience,
                           const Stop &stop) {
  for (Retry retry(patience);;) {
    auto reader = Reader::open(name, options, Deadline::in(kToOpenReader).earlier(retry.until()));
    if (reader.ok() || !passes(reader.code())) return reader;
    if (stop()) return Error{Code::kCancelled, "it was told to stop"};
    if (!retry.wait(stop) && reader.code() != Code::kTimedOut) return reader;
    if (retry.until().passed())
      return Error{Code::kTimedOut, fmt::format("no stream '{}' was there in time: `nessie stream list` shows which "
                                                "there are",
                                                name)};
  }
}

Status pump(Reader &reader, Sink &sink, const PumpOptions &options, Progress &progress) {
  for (Trouble trouble(options.patience); !options.stop();) {
    if (options.most_steps != 0 && progress.steps == options.most_steps) return {};
    const auto state = reader.begin_step(Deadline::in(kTurn));
    if (!state.ok()) {
      if (!passes(state.code()) || trouble.lasts()) return state.error();
      if (trouble.begins() || state.code() == Code::kNotFound) options.say(state.error().message);
      continue;
    }
    if (*state == StepState::kNotYet) {
      if (trouble.lasts()) return Error{Code::kPeerLost, "no step has come since"};
      continue;
    }
    if (*state == StepState::kEnd) {
      progress.has_ended = true;
      progress.why_ended = reader.why_ended();
      auto finished = sink.finish();
      progress.gaps = sink.missing();
      return finished;
    }
    trouble.is_over();
    if (auto done = hand_on(reader, sink, options, progress); !done.ok())
      return done.code() == Code::kCancelled ? Status() : done;
  }
  return {};
}

}  // namespace nessie::streams::sinks
