// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/faulty/faults.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace nnti::faulty {
namespace {

using namespace std::chrono_literals;

bool only_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<Extent> parse_extent(const std::string &text) {
  if (text == "forever") return Extent{0, {}, true};
  if (only_digits(text) && text.size() < 10) return Extent{std::stoull(text), {}, false};
  nessie::Config one;
  one.set("extent", text);
  auto duration = one.get_duration("extent", 0ms);
  if (!duration.ok()) return duration.error();
  return Extent{0, *duration, false};
}

Status load_fault(const nessie::Config &config, std::string_view name, Fault &fault) {
  const auto key = fmt::format("nnti.faulty.{}", name);
  const auto text = config.get(key);
  if (!text) return {};
  const auto colon = text->find(':');
  const auto number = text->substr(0, colon);
  char *end = nullptr;
  fault.probability = std::strtod(number.c_str(), &end);
  auto extent = colon == std::string::npos ? Result<Extent>(fault.extent) : parse_extent(text->substr(colon + 1));
  const bool good = !number.empty() && *end == '\0' && fault.probability >= 0 && fault.probability <= 1 && extent.ok();
  if (!good)
    return Error{Code::kInvalidArgument,
                 fmt::format("{} is '{}'; give a probability, and perhaps how long: 0.01:20ms", key, *text)};
  fault.extent = *extent;
  return {};
}

}  // namespace

Result<Faults> Faults::load(const nessie::Config &config) {
  Faults faults;
  faults.delay.extent = {10, {}, false};
  faults.breaks.extent = {0, 100ms, false};
  faults.silent.extent = {0, 1s, false};
  auto seed = config.get_int("nnti.faulty.seed", 1);
  if (!seed.ok()) return seed.error();
  faults.seed = static_cast<std::uint64_t>(*seed);
  struct Line {
    std::string_view name;
    Fault &fault;
  };
  for (const auto &line : {Line{"loss", faults.loss}, Line{"duplicate", faults.duplicate}, Line{"delay", faults.delay},
                           Line{"reorder", faults.reorder}, Line{"transient", faults.transient},
                           Line{"break", faults.breaks}, Line{"silent", faults.silent}})
    if (auto status = load_fault(config, line.name, line.fault); !status.ok()) return status.error();
  return faults;
}

std::uint64_t Dice::next() {
  std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

Moment Dice::within(const Extent &extent, const Moment &now) {
  if (extent.forever) return {0, Time::min(), true};
  if (extent.turns > 0) return {now.turn + 1 + below(extent.turns), Time::min(), false};
  const auto most = static_cast<std::uint64_t>(std::max<Duration::rep>(extent.time.count(), 1));
  return {0, now.time + Duration(static_cast<Duration::rep>(1 + below(most))), false};
}

}  // namespace nnti::faulty
