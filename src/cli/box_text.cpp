// SPDX-License-Identifier: BSD-3-Clause
#include "box_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace nessie::cli {

namespace {

Error points_to(Code code, std::string_view text, std::size_t at, std::string_view what) {
  return {code, fmt::format("{}\n{}\n{:>{}} {}", "this cannot be meant:", text, '^', at + 1, what)};
}

Error expected(std::string_view text, std::size_t at) {
  return points_to(Code::kInvalidArgument, text, at, "here an element, as 5, or a range, as 0:9 or :, is expected");
}

/// A number that is all of `part`, or nothing of it. False: it is something else.
bool read_number(std::string_view part, std::optional<std::int64_t> &number) {
  if (part.empty()) return true;
  std::int64_t value = 0;
  const auto parsed = std::from_chars(part.data(), part.data() + part.size(), value);
  number = value;
  return parsed.ec == std::errc() && parsed.ptr == part.data() + part.size();
}

std::string_view trimmed(std::string_view part) {
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

/// `at`: where `part` begins in `text`.
Result<RangeText> parse_range(std::string_view text, std::string_view part, std::size_t at) {
  RangeText range;
  part = trimmed(part);
  range.at = part.empty() ? at : static_cast<std::size_t>(part.data() - text.data());
  const auto colon = part.find(':');
  range.is_index = colon == std::string_view::npos;
  if (!read_number(trimmed(part.substr(0, colon)), range.start)) return expected(text, range.at);
  if (range.is_index) return range.start ? Result<RangeText>(range) : expected(text, range.at);
  const auto stop = part.substr(colon + 1);
  if (stop.find(':') != std::string_view::npos)
    return points_to(Code::kInvalidArgument, text, static_cast<std::size_t>(stop.data() - text.data()) + stop.find(':'),
                     "steps are not supported: all elements of a range are taken");
  if (!read_number(trimmed(stop), range.stop))
    return expected(text, static_cast<std::size_t>(stop.data() - text.data()));
  return range;
}

}  // namespace

Result<BoxText> BoxText::parse(std::string_view text) {
  BoxText box{std::string(text), std::string(text), {}};
  const auto open = text.rfind('[');
  if (open == std::string_view::npos) return box;
  if (open == 0) return points_to(Code::kInvalidArgument, text, 0, "here the name of a variable is expected");
  if (!text.ends_with(']')) return points_to(Code::kInvalidArgument, text, text.size(), "here ] is expected");
  box.variable = text.substr(0, open);
  const auto inside = text.substr(open + 1, text.size() - open - 2);
  for (std::size_t at = 0; at <= inside.size();) {
    const auto comma = std::min(inside.find(',', at), inside.size());
    const auto range = parse_range(text, inside.substr(at, comma - at), open + 1 + at);
    if (!range.ok()) return range.error();
    box.ranges.push_back(*range);
    at = comma + 1;
  }
  return box;
}

Result<streams::Box> BoxText::in(const streams::Extents &shape) const {
  auto box = streams::whole(shape);
  for (std::size_t each = 0; each < ranges.size(); ++each) {
    const auto &range = ranges[each];
    if (each == shape.size())
      return points_to(Code::kInvalidArgument, text, range.at,
                       fmt::format("it has {} dimension{} only", shape.size(), shape.size() == 1 ? "" : "s"));
    const auto extent = shape[each];
    const auto from_end = [&](std::int64_t number) { return number < 0 ? number + extent : number; };
    const auto start = from_end(range.start.value_or(0));
    if (range.is_index && (start < 0 || start >= extent))
      return points_to(
          Code::kOutOfRange, text, range.at,
          fmt::format("element {} is out of bounds for dimension {}, which has {}", *range.start, each, extent));
    const auto stop = range.is_index ? start + 1 : from_end(range.stop.value_or(extent));
    box.start[each] = std::clamp<std::int64_t>(start, 0, extent);
    box.count[each] = std::max<std::int64_t>(std::clamp<std::int64_t>(stop, 0, extent) - box.start[each], 0);
  }
  return box;
}

}  // namespace nessie::cli
