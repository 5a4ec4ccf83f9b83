// SPDX-License-Identifier: BSD-3-Clause
// nessie stream tail: looks on, and holds nothing.
#include "box_text.hpp"
#include "speech.hpp"
#include "stream.hpp"
#include "stream_print.hpp"

#include <base/printable.hpp>
#include <services/streams/sinks/pump.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

namespace nessie::cli {

namespace {

using nlohmann::ordered_json;
using streams::Reader;
using streams::StepState;
using streams::Type;
using streams::Variable;

constexpr std::chrono::milliseconds kTurn{500};
constexpr std::uint64_t kMostShown = std::uint64_t{64} << 20;  ///< bytes of one box

/// What one variable has in one step.
struct Shown {
  const Variable *variable = nullptr;
  std::string label;  ///< as the user said it
  streams::Box box;
  std::optional<streams::Figures> figures;
  std::vector<std::byte> elements;
};

/// kInvalidArgument: it is none of oldest, latest, next and a number.
Status set_beginning(streams::ReaderOptions &reader, const std::string &from) {
  using streams::From;
  const auto end = from.data() + from.size();
  const auto parsed = std::from_chars(from.data(), end, reader.first);
  if (from == "oldest") return (void)(reader.from = From::kOldest), Status();
  if (from == "latest" || from.empty()) return (void)(reader.from = From::kLatest), Status();
  if (from == "next") return (void)(reader.from = From::kNext), Status();
  if (parsed.ec == std::errc() && parsed.ptr == end) return (void)(reader.from = From::kNumber), Status();
  return Error{Code::kInvalidArgument,
               fmt::format("--from {}: oldest, latest, next or a step's number is expected", printable(from))};
}

class Tail {
 public:
  Tail(const StreamOptions &options, Reader reader, std::vector<BoxText> boxes)
      : options_(options), reader_(std::move(reader)), boxes_(std::move(boxes)) {}
  /// Until it has ended, there were as many steps as were wanted, or `stop` says so.
  int run(const streams::sinks::Stop &stop);

 private:
  Status show();
  void say_end() const {
    if (!reader_.why_ended().empty())
      say(fmt::format("{} has ended: {}", printable(options_.name), printable(reader_.why_ended())));
  }
  Result<std::vector<Shown>> choose() const;
  Status look(Shown &shown);
  void print(const std::vector<Shown> &all) const;
  ordered_json json_of_step(const std::vector<Shown> &all) const;

  const StreamOptions &options_;
  Reader reader_;
  std::vector<BoxText> boxes_;
  std::uint64_t shown_ = 0;  ///< steps before this one
};

Result<std::vector<Shown>> Tail::choose() const {
  std::vector<Shown> all;
  for (const auto &text : boxes_) {
    const auto *variable = reader_.find(text.variable);
    if (variable == nullptr) continue;  // not in this step
    auto box = text.in(variable->shape);
    if (!box.ok()) return box.error();
    all.push_back({variable, text.text, *std::move(box), {}, {}});
  }
  if (!boxes_.empty()) return all;
  for (const auto &each : reader_.variables()) {
    const bool is_chosen = std::ranges::count(options_.variables, each.name) != 0;
    const bool is_news = !each.is_constant || reader_.put_in(each.name) >= shown_;
    if (is_chosen || (options_.variables.empty() && is_news))
      all.push_back({&each, each.name, streams::whole(each.shape), {}, {}});
  }
  return all;
}

Status Tail::look(Shown &shown) {
  const auto deadline = Deadline::in(timeout_of(options_));
  const auto &name = shown.variable->name;
  std::uint64_t bytes = streams::size_of(shown.variable->type);
  for (const auto each : shown.box.count) bytes *= static_cast<std::uint64_t>(each);
  if (shown.variable->type != Type::kChar) {
    const auto figures = reader_.figures(name, shown.box, deadline);
    if (!figures.ok()) return figures.error();
    shown.figures = *figures;
  }
  if (!options_.values) return {};
  if (bytes > kMostShown)
    return Error{Code::kTooLarge,
                 fmt::format("{} is too large to be shown: take a part of it, as --box '{}[0:10]'", shown.label, name)};
  shown.elements.resize(bytes);
  return reader_.get(name, shown.box, shown.elements.data(), bytes, deadline);
}

ordered_json Tail::json_of_step(const std::vector<Shown> &all) const {
  auto variables = ordered_json::array();
  for (const auto &each : all) {
    ordered_json one{{"name", to_utf8(each.variable->name)},
                     {"type", streams::name_of(each.variable->type)},
                     {"constant", each.variable->is_constant},
                     {"start", each.box.start},
                     {"count", each.box.count}};
    if (each.figures && each.figures->elements > 0)
      one.update(
          {{"minimum", each.figures->minimum}, {"maximum", each.figures->maximum}, {"mean", each.figures->mean}});
    if (each.figures) one["elements"] = each.figures->elements;
    if (options_.values) one["values"] = json_of(each.variable->type, each.box.count, each.elements);
    variables.push_back(std::move(one));
  }
  return {{"step", reader_.step()}, {"missed", reader_.missed()}, {"variables", std::move(variables)}};
}

void Tail::print(const std::vector<Shown> &all) const {
  if (options_.json) return fmt::print("{}\n", json_of_step(all).dump());
  fmt::print("step {}{}\n", reader_.step(), reader_.missed() > 0 ? fmt::format(" ({} missed)", reader_.missed()) : "");
  for (const auto &each : all) {
    fmt::print("  {}  {}", printable(each.label), describe_type(*each.variable));
    if (each.figures && each.figures->elements > 0)
      fmt::print("  minimum {:.6g}, maximum {:.6g}, mean {:.6g}", each.figures->minimum, each.figures->maximum,
                 each.figures->mean);
    if (each.figures && each.figures->elements == 0) fmt::print("  no elements that count");
    fmt::print("\n");
    if (options_.values) fmt::print("{}\n", text_of(each.variable->type, each.box.count, each.elements));
  }
}

Status Tail::show() {
  auto all = choose();
  if (!all.ok()) return all.error();
  for (auto &each : *all)
    if (auto looked = look(each); !looked.ok()) return looked;
  print(*all);
  shown_ = reader_.step() + 1;
  if (std::fflush(stdout) != 0) return Error{Code::kIo, "nobody reads what it prints"};
  return {};
}

int Tail::run(const streams::sinks::Stop &stop) {
  for (std::uint64_t steps = 0; !stop() && (options_.steps == 0 || steps < options_.steps);) {
    const auto state = reader_.begin_step(Deadline::in(kTurn));
    if (!state.ok() && state.code() == Code::kTimedOut) continue;
    if (!state.ok()) return fail_stream(state.error());
    if (*state == StepState::kEnd) return say_end(), 0;
    if (*state == StepState::kNotYet) continue;
    const auto shown = show();
    const bool is_gone = shown.code() == Code::kNotFound && !options_.every;  // while it was looked at
    if (!shown.ok() && !is_gone) return fail_stream(shown.error());
    if (!is_gone) ++steps;
    if (auto ended = reader_.end_step(); !ended.ok()) return fail_stream(ended.error());
  }
  return 0;
}

}  // namespace

int tail_stream(const StreamOptions &options) {
  std::vector<BoxText> boxes;
  for (const auto &text : options.boxes) {
    auto box = BoxText::parse(text);
    if (!box.ok()) return (void)fail_stream(box.error()), 2;
    boxes.push_back(*std::move(box));
  }
  streams::ReaderOptions wanted;
  wanted.at = options.at;
  wanted.reading = options.every ? streams::Reading::kEvery : streams::Reading::kView;
  if (auto set = set_beginning(wanted, options.from); !set.ok()) return (void)fail_stream(set.error()), 2;
  auto ending = Ending::watch();
  if (!ending.ok()) return fail_stream(ending.error());
  const streams::sinks::Stop stop = [&] { return ending->is_asked(); };
  auto reader = streams::sinks::open_reader(options.name, wanted, timeout_of(options), stop);
  if (!reader.ok()) return reader.code() == Code::kCancelled ? 0 : fail_stream(reader.error());
  return Tail(options, *std::move(reader), std::move(boxes)).run(stop);
}

}  // namespace nessie::cli
