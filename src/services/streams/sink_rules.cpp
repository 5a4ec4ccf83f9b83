// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/sink_rules.hpp>

#include <services/streams/geometry.hpp>

#include <fmt/format.h>
#include <fnmatch.h>

#include <optional>
#include <sstream>

namespace streams {

namespace {

using nessie::Code;
using nessie::Error;

const char *word_of(SinkRule::Kind kind) { return kind == SinkRule::Kind::kRecord ? "record" : "forward"; }

/// FNV-1a: the same in every process.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211u;
  return hash;
}

std::optional<SinkRule> parse_rule(const std::string &word) {
  const auto colon = word.find(':'), equals = word.find('=');
  if (colon == std::string::npos || equals == std::string::npos || equals < colon + 2 || equals + 1 == word.size())
    return std::nullopt;
  for (const auto kind : {SinkRule::Kind::kRecord, SinkRule::Kind::kForward})
    if (word.substr(0, colon) == word_of(kind))
      return SinkRule{kind, word.substr(colon + 1, equals - colon - 1), word.substr(equals + 1)};
  return std::nullopt;
}

}  // namespace

bool SinkRule::matches(const std::string &stream) const { return ::fnmatch(glob.c_str(), stream.c_str(), 0) == 0; }

std::string SinkRule::name() const { return fmt::format("{}:{}={}", word_of(kind), glob, target); }

std::string SinkRule::subscription() const {
  auto all = name();
  return check_name("subscription", all).ok() ? all : fmt::format("{}:{:016x}", word_of(kind), hash_of(all));
}

nessie::Result<std::vector<SinkRule>> parse_sink_rules(std::string_view setting) {
  std::vector<SinkRule> rules;
  std::istringstream words{std::string(setting)};
  for (std::string word; words >> word;) {
    auto rule = parse_rule(word);
    if (!rule)
      return Error{Code::kInvalidArgument,
                   fmt::format("streams.sinks: '{}' is neither record:STREAM=FILE nor forward:STREAM=PLACE", word)};
    rules.push_back(*std::move(rule));
  }
  return rules;
}

}  // namespace streams
