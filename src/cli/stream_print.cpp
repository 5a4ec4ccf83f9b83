// SPDX-License-Identifier: BSD-3-Clause
#include "stream_print.hpp"

#include "speech.hpp"

#include <base/config.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <functional>
#include <numeric>

namespace nessie::cli {

namespace {

using nlohmann::ordered_json;
using streams::Extents;
using streams::StreamInfo;
using streams::Type;

const char *name_of(StreamInfo::State state) {
  switch (state) {
    case StreamInfo::State::kOpen: return "open";
    case StreamInfo::State::kEnded: return "ended";
    case StreamInfo::State::kInterrupted: return "interrupted";
  }
  return "?";
}

const char *name_of(streams::Durability durability) {
  return durability == streams::Durability::kLogged ? "logged" : "memory";
}

const char *name_of(streams::Reading reading) { return reading == streams::Reading::kView ? "view" : "every step"; }

std::string name_of(const streams::ReaderInfo &reader) {
  return reader.subscription.empty() ? "a reader without a name" : fmt::format("'{}'", printable(reader.subscription));
}

/// Calls `use` with the element as what it is.
template <class Use> auto with_element(Type type, std::span<const std::byte> bytes, Use use) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return use(value);
  };
  switch (type) {
    case Type::kInt8: return as(std::int8_t{});
    case Type::kInt16: return as(std::int16_t{});
    case Type::kInt32: return as(std::int32_t{});
    case Type::kFloat: return as(float{});
    case Type::kUint8: return as(std::uint8_t{});
    case Type::kUint16: return as(std::uint16_t{});
    case Type::kUint32: return as(std::uint32_t{});
    case Type::kInt64: return as(std::int64_t{});
    case Type::kUint64: return as(std::uint64_t{});
    case Type::kChar:
    case Type::kDouble: break;
  }
  return as(double{});
}

std::string letters(std::span<const std::byte> bytes) {
  std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  return text;
}

/// Text is in rows: its last dimension is the letters of one.
bool is_row(Type type, const Extents &count, std::size_t at) {
  return type == Type::kChar ? at + 1 >= count.size() : at == count.size();
}

std::size_t bytes_from(Type type, const Extents &count, std::size_t at) {
  return static_cast<std::size_t>(std::accumulate(count.begin() + static_cast<std::ptrdiff_t>(at), count.end(),
                                                  std::int64_t{1}, std::multiplies<>())) *
         streams::size_of(type);
}

std::string nested_text(Type type, const Extents &count, std::size_t at, std::span<const std::byte> bytes) {
  if (is_row(type, count, at)) return text_of(type, bytes);
  const auto each = bytes_from(type, count, at + 1);
  std::string text = "[";
  for (std::int64_t index = 0; index < count[at]; ++index) {
    const bool is_last_dimension = is_row(type, count, at + 1);
    if (index > 0) text += is_last_dimension ? " " : "\n" + std::string(at + 1, ' ');
    text += nested_text(type, count, at + 1, bytes.subspan(static_cast<std::size_t>(index) * each, each));
  }
  return text + "]";
}

ordered_json nested_json(Type type, const Extents &count, std::size_t at, std::span<const std::byte> bytes) {
  if (is_row(type, count, at)) return json_of(type, bytes);
  const auto each = bytes_from(type, count, at + 1);
  auto list = ordered_json::array();
  for (std::int64_t index = 0; index < count[at]; ++index)
    list.push_back(nested_json(type, count, at + 1, bytes.subspan(static_cast<std::size_t>(index) * each, each)));
  return list;
}

std::string attribute_text(const streams::Attribute &attribute) {
  if (attribute.type == Type::kChar) return fmt::format("\"{}\"", printable(letters(attribute.value)));
  const auto size = streams::size_of(attribute.type);
  std::vector<std::string> values;
  for (std::size_t at = 0; size > 0 && at + size <= attribute.value.size(); at += size)
    values.push_back(text_of(attribute.type, std::span(attribute.value).subspan(at, size)));
  return fmt::format("{}", fmt::join(values, ", "));
}

ordered_json attribute_json(const streams::Attribute &attribute) {
  const auto size = streams::size_of(attribute.type);
  if (attribute.type == Type::kChar) return to_utf8(letters(attribute.value));
  const auto count = static_cast<std::int64_t>(size == 0 ? 0 : attribute.value.size() / size);
  return count == 1 ? json_of(attribute.type, attribute.value) : json_of(attribute.type, {count}, attribute.value);
}

ordered_json to_json(const streams::Variable &variable) {
  auto json = ordered_json{{"name", to_utf8(variable.name)},
                           {"type", streams::name_of(variable.type)},
                           {"shape", variable.shape},
                           {"constant", variable.is_constant}};
  if (!variable.fill.empty()) json["fill"] = json_of(variable.type, variable.fill);
  return json;
}

ordered_json to_json(const streams::ReaderInfo &reader) {
  return {{"subscription", to_utf8(reader.subscription)},
          {"reading", reader.reading == streams::Reading::kView ? "view" : "every"},
          {"size", reader.size},
          {"connected", reader.connected},
          {"ended", reader.ended},
          {"lag", reader.lag},
          {"missed", reader.missed}};
}

}  // namespace

std::string describe_type(const streams::Variable &variable) {
  return fmt::format("{}{}{}", variable.is_constant ? "constant " : "", streams::name_of(variable.type),
                     variable.shape.empty() ? "" : fmt::format(" ({})", fmt::join(variable.shape, ", ")));
}

std::string describe_line(const StreamInfo &stream) {
  return fmt::format("{}  {}, {}, {} of {} writers, {}, {} in memory{}", printable(stream.name), name_of(stream.state),
                     stream.oldest > 0 && stream.oldest < stream.steps
                         ? fmt::format("{}, from {} on", counted(stream.steps, "step"), stream.oldest)
                         : counted(stream.steps, "step"),
                     stream.connected, stream.writers, counted(stream.readers.size(), "reader"),
                     format_size(stream.memory_bytes),
                     stream.log_bytes > 0 ? fmt::format(", {} in the log", format_size(stream.log_bytes)) : "");
}

std::string describe(const StreamInfo &stream) {
  auto text = describe_line(stream) + "\n";
  if (!stream.why.empty()) text += fmt::format("  {}\n", printable(stream.why));
  if (!stream.at.empty()) text += fmt::format("  at {}\n", printable(stream.at));
  text += fmt::format("  durability: {}{}\n", name_of(stream.durability), stream.is_file ? "; a staged file" : "");
  for (const auto &variable : stream.variables) {
    text += fmt::format("  {}  {}\n", printable(variable.name), describe_type(variable));
    for (const auto &each : stream.attributes)
      if (each.variable == variable.name)
        text += fmt::format("    {} = {}\n", printable(each.name), attribute_text(each));
  }
  for (const auto &each : stream.attributes)
    if (each.variable.empty()) text += fmt::format("  {} = {}\n", printable(each.name), attribute_text(each));
  for (const auto &reader : stream.readers)
    text +=
        fmt::format("  read by {}: {}, {} of {} here, {} behind{}\n", name_of(reader), name_of(reader.reading),
                    reader.connected, counted(static_cast<std::uint64_t>(reader.size), "process"),
                    counted(reader.lag, "step"), reader.missed > 0 ? fmt::format(", {} missed", reader.missed) : "");
  return text;
}

ordered_json to_json(const StreamInfo &stream) {
  auto variables = ordered_json::array(), attributes = ordered_json::array(), readers = ordered_json::array(),
       servers = ordered_json::array();
  for (const auto &each : stream.variables) variables.push_back(to_json(each));
  for (const auto &each : stream.attributes)
    attributes.push_back({{"variable", to_utf8(each.variable)},
                          {"name", to_utf8(each.name)},
                          {"type", streams::name_of(each.type)},
                          {"value", attribute_json(each)}});
  for (const auto &each : stream.readers) readers.push_back(to_json(each));
  for (const auto &each : stream.servers)
    servers.push_back({{"server", each.server}, {"memory_bytes", each.memory_bytes}, {"log_bytes", each.log_bytes}});
  return {{"name", to_utf8(stream.name)},
          {"at", to_utf8(stream.at)},
          {"state", name_of(stream.state)},
          {"why", to_utf8(stream.why)},
          {"file", stream.is_file},
          {"writers", stream.writers},
          {"connected", stream.connected},
          {"durability", name_of(stream.durability)},
          {"steps", stream.steps},
          {"oldest", stream.oldest},
          {"memory_bytes", stream.memory_bytes},
          {"log_bytes", stream.log_bytes},
          {"servers", std::move(servers)},
          {"variables", std::move(variables)},
          {"attributes", std::move(attributes)},
          {"readers", std::move(readers)}};
}

std::string text_of(Type type, std::span<const std::byte> elements) {
  if (type == Type::kChar) return fmt::format("\"{}\"", printable(letters(elements)));
  return with_element(type, elements, [](auto value) { return fmt::format("{}", value); });
}

ordered_json json_of(Type type, std::span<const std::byte> elements) {
  if (type == Type::kChar) return to_utf8(letters(elements));
  return with_element(type, elements, [](auto value) { return ordered_json(value); });
}

std::string text_of(Type type, const Extents &count, std::span<const std::byte> elements) {
  return nested_text(type, count, 0, elements);
}

ordered_json json_of(Type type, const Extents &count, std::span<const std::byte> elements) {
  return nested_json(type, count, 0, elements);
}

}  // namespace nessie::cli
